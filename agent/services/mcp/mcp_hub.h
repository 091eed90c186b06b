// McpHub: the MCP servers of one workspace. They come from a file of the operator's, which may change while it runs, from
// EXTRA_MCP_SERVERS, and from clients that add some for as long as the workspace and the agent last. One that is slow, broken or
// held back never holds the others.
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
#include "agent/services/mcp/pending_calls.h"

namespace caisson::services {

class McpHub {
 public:
  McpHub(bridge::LauncherClient& launcher, const Config& config);
  ~McpHub();
  void serve_workspace(std::string name);

  static constexpr std::size_t kMostAdded = 32;
  // Those that are configured, then those that were added, each in the order of their names, after a look at the files.
  [[nodiscard]] const std::vector<McpServer::Pointer>& servers();
  [[nodiscard]] McpServer::Pointer find(std::string_view name);

  // Adds a server for `config.added_by`, or puts it in the place of the one that this credential added under its name. of_all: in
  // that of anybody. Errors: already_exists, if the name is a configured server's or that of another credential, or if names of
  // tools can begin with its prefix and another server's; limit.
  [[nodiscard]] Status add(ServerConfig config, bool of_all);
  // Removes one that was added by the credential, or, with of_all, by anybody. Errors: not_found, already_exists (as for add).
  [[nodiscard]] Status remove(const std::string& name, const std::string& owner, bool of_all);

  struct Listed {
    McpServer::Pointer server;
    Items items;
  };
  // What these servers offer of a kind. Those that have not said so within the time are left out, and go on: clients hear of a
  // changed list once it is known.
  [[nodiscard]] asio::awaitable<std::vector<Listed>> list(std::vector<McpServer::Pointer> of, Kind kind);
  // The copy that serves a session's requests to the server; nullptr: the one that all share.
  [[nodiscard]] ServerInstance::Pointer copy_of(const McpServer::Pointer& server, const ClientSessionPtr& session);

  // A request that the server may interrupt with questions to the owner's client, on a copy that serves it alone; nullptr:
  // the bounds leave no room for another copy.
  [[nodiscard]] PendingCallPtr begin_call(const McpServer::Pointer& server, const std::string& owner, json::Value capabilities,
                                          const std::string& binding);

  McpSessions sessions;
  PendingCalls calls;

 private:
  static constexpr std::size_t kMostCopies = 16;
  struct Listing;
  static task<void> list_one(std::shared_ptr<Listing> listing, McpServer::Pointer server, Kind kind);
  void look();
  [[nodiscard]] std::vector<ServerConfig> configured() const;
  void renew();
  [[nodiscard]] bool has_room_for_copy();
  void take(const std::vector<ServerConfig>& configured);
  void heard(const mcp::Message& message);

  bridge::LauncherClient& launcher_;
  std::string workspace_;
  const std::shared_ptr<OutputBudget> budget_;
  http::WatchedFile file_;
  std::vector<ServerConfig> from_file_, extra_, added_;
  bool taken_ = false;
  std::vector<McpServer::Pointer> servers_;
  const std::shared_ptr<Life> life_;
};

}  // namespace caisson::services
