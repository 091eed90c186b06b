// McpHub: the configured MCP servers of one workspace. They come from a file of the operator's, which may change while it runs,
// and from EXTRA_MCP_SERVERS. One that is slow, broken or held back never holds the others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/http/watched_file.h"
#include "agent/services/common/roster.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/mcp/mcp_server.h"
#include "agent/services/mcp/mcp_sessions.h"

namespace caisson::services {

class McpHub {
 public:
  McpHub(bridge::LauncherClient& launcher, const Config& config);
  ~McpHub();
  void serve_workspace(std::string name);

  // In the order of their names, after a look at the files.
  [[nodiscard]] const std::vector<McpServer::Pointer>& servers();
  [[nodiscard]] McpServer::Pointer find(std::string_view name);

  struct Listed {
    McpServer::Pointer server;
    Items items;
  };
  // What these servers offer of a kind. Those that have not said so within the time are left out, and go on: clients hear of a
  // changed list once it is known.
  [[nodiscard]] asio::awaitable<std::vector<Listed>> list(std::vector<McpServer::Pointer> of, Kind kind);
  // The copy that serves a session's requests to the server; nullptr: the one that all share.
  [[nodiscard]] ServerInstance::Pointer copy_of(const McpServer::Pointer& server, const ClientSessionPtr& session);

  McpSessions sessions;

 private:
  static constexpr std::size_t kMostCopies = 16;
  struct Listing;
  static task<void> list_one(std::shared_ptr<Listing> listing, McpServer::Pointer server, Kind kind);
  void look();
  void take(const std::vector<ServerConfig>& configured);
  void heard(const mcp::Message& message);

  bridge::LauncherClient& launcher_;
  std::string workspace_;
  const std::shared_ptr<OutputBudget> budget_;
  http::WatchedFile file_;
  std::vector<ServerConfig> from_file_, extra_;
  bool taken_ = false;
  std::vector<McpServer::Pointer> servers_;
  const std::shared_ptr<Life> life_;
};

}  // namespace caisson::services
