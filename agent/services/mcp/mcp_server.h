// McpServer: a configured server in one workspace: the copy that all clients share, what it offers, and whether its tools are
// still those that were approved. A server that changes the description of a tool after that (a "rug pull") is held back: none of
// its tools is listed or called until the change is approved.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/services/mcp/server_instance.h"

namespace caisson::services {

// What a server can list.
enum class Kind { tools, prompts, resources, templates };
struct KindRow {
  std::string_view method, member, capability, name;  // name: the member by which an item is known
};
inline constexpr std::array<KindRow, 4> kKinds = {
    {{"tools/list", "tools", "tools", "name"},
     {"prompts/list", "prompts", "prompts", "name"},
     {"resources/list", "resources", "resources", "uri"},
     {"resources/templates/list", "resourceTemplates", "resources", "uriTemplate"}}};
[[nodiscard]] constexpr const KindRow& row_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

// Paid for as long as somebody holds it.
struct ItemList : std::vector<json::Value> {
  http::Budget::Share share;
};
using Items = std::shared_ptr<const ItemList>;

class McpServer : public std::enable_shared_from_this<McpServer> {
 public:
  using Pointer = std::shared_ptr<McpServer>;
  static constexpr std::size_t kMostItems = 1024, kMostItemBytes = 256 * 1024, kMostListBytes = 2 * 1024 * 1024;

  McpServer(bridge::LauncherClient& launcher, ServerInstance::Setup setup);

  // What it offers of a kind, by the server's own names; asked once, and again after it said that its list changed. Failures: as
  // ServerInstance::request; of tools also that it is held back.
  [[nodiscard]] static asio::awaitable<mcp::Or<Items>> list(Pointer self, Kind kind);
  // As list(), if that is known without asking.
  [[nodiscard]] Items known(Kind kind) const;
  [[nodiscard]] bool is_asked(Kind kind) const { return lists_[static_cast<std::size_t>(kind)].asking; }
  // A request to the copy that is shared, or to the client's own. A tool is called only after the tools of that copy were
  // compared with those that are approved.
  [[nodiscard]] static asio::awaitable<mcp::Or<json::Value>> request(Pointer self, ServerInstance::Pointer copy,
                                                                     std::string method, json::Value params, AskerPtr asker,
                                                                     ExchangePtr exchange);
  // What is seen now is what may be from now on.
  void approve();
  [[nodiscard]] static task<void> stop(Pointer self, std::string reason);
  // A copy for one client.
  [[nodiscard]] ServerInstance::Pointer copy_for(json::Value capabilities) const;

  [[nodiscard]] const ServerConfig& config() const { return setup_.config; }
  [[nodiscard]] const ServerInstance::Pointer& shared() const { return shared_; }
  // Why none of its tools can be used; nullopt: it is not held back.
  [[nodiscard]] const std::optional<std::string>& held() const { return held_; }
  // It could not say lately what it offers, or not in time: nobody waits for it longer than for a moment.
  bool in_trouble = false;
  // For the operator: its state, starts, last error, digest of its tools, why it is held back, its stderr.
  [[nodiscard]] json::Value status() const;

 private:
  struct List {
    Items items;
    bool stale = true;
    bool asking = false;
  };
  struct Asking;
  static asio::awaitable<mcp::Or<Items>> ask(Pointer self, ServerInstance::Pointer copy, Kind kind);
  static asio::awaitable<mcp::Or<Items>> look_at_tools(Pointer self, ServerInstance::Pointer copy);
  [[nodiscard]] ServerInstance::Setup with_changes() const;
  void changed(const mcp::Message& message);
  // Compares the tools with those that are approved.
  void judge(const std::vector<json::Value>& tools);

  bridge::LauncherClient& launcher_;
  ServerInstance::Setup setup_;
  std::array<List, kKinds.size()> lists_;
  std::string seen_digest_, approved_digest_;
  std::map<std::string, std::string> seen_, approved_;  // digest of each tool
  std::optional<std::string> held_;
  std::size_t left_out_ = 0;   // items of the last list that are no valid ones
  std::uint64_t changes_ = 1;  // a copy said so often that its tools changed
  ServerInstance::Pointer shared_;
  bridge::Notifier asked_;
};

}  // namespace caisson::services
