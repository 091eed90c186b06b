// ServerInstance: one copy of a configured MCP server, a program in a sealed session of its own. It is started by the first
// request, ended when it is idle, and started again, with growing pauses, after it failed. It speaks the stateful revisions up to
// 2025-11-25, or 2026-07-28.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "agent/services/mcp/line_peer.h"
#include "agent/services/mcp/server_config.h"
#include "agent/services/program/supervisor.h"

namespace caisson::services {

// On whose behalf a request is made. What a server says while it carries the request out is for that client alone.
struct Asker {
  using Answer = asio::awaitable<mcp::Or<json::Value>>;
  std::string owner;                                                  // the credential
  std::function<void(json::Value notification)> tell;                 // absent: it hears none
  std::function<Answer(std::string method, json::Value params)> ask;  // absent: nothing can be asked of it
};
using AskerPtr = std::shared_ptr<Asker>;

// What a server said of itself.
struct ServerHello {
  bool newest = false;  // it speaks 2026-07-28
  json::Value capabilities = json::Value::object(), info = json::Value::object();
  std::string instructions;
};

class ServerInstance : public std::enable_shared_from_this<ServerInstance> {
 public:
  using Pointer = std::shared_ptr<ServerInstance>;
  struct Setup {
    ServerConfig config;
    std::string workspace;
    std::shared_ptr<OutputBudget> budget;
    json::Value capabilities = json::Value::object();  // of the one client that it serves; empty: it serves all
    // Notifications that belong to no request: changed lists, changed resources.
    std::function<void(const mcp::Message&)> on_change;
  };
  [[nodiscard]] static Pointer make(bridge::LauncherClient& launcher, Setup setup);

  // Returns when it runs and has said hello. Errors: the launcher's; the program's last words; a secret that cannot be read.
  [[nodiscard]] static task<void> ready(Pointer self);
  // The result of a request, once it is ready. Failures: the server's own, or as `internal` what ready() and LinePeer::call say.
  [[nodiscard]] static asio::awaitable<mcp::Or<json::Value>> request(Pointer self, std::string method, json::Value params,
                                                                     AskerPtr asker, ExchangePtr exchange);
  void notify(std::string_view method, json::Value params);
  [[nodiscard]] static task<void> stop(Pointer self, std::string reason);

  [[nodiscard]] const ServerHello& hello() const { return hello_; }
  [[nodiscard]] bool offers(std::string_view capability) const { return hello_.capabilities.contains(capability); }
  [[nodiscard]] Supervisor::Health health() const { return supervisor_.health(); }
  // Of the copy that runs now, or ran last.
  [[nodiscard]] std::string session() const { return program_ && program_->session() ? program_->session()->id : ""; }
  // Of the copy that runs now; 0: none does.
  [[nodiscard]] std::uint64_t start_number() const;
  [[nodiscard]] std::size_t under_way() const { return askers_.size(); }
  // The end of what it wrote to stderr, also after its end.
  [[nodiscard]] std::string stderr_tail() const;

  // Its tools were compared with the approved ones in this start of it, after so many changes (McpServer).
  std::pair<std::uint64_t, std::uint64_t> compared{0, 0};

 private:
  ServerInstance(bridge::LauncherClient& launcher, Setup setup);
  struct UnderWay;
  static task<void> greet(std::weak_ptr<ServerInstance> instance, bridge::Clock::time_point deadline);
  static task<void> listen(std::weak_ptr<ServerInstance> instance, LinePeer::Pointer peer);
  static task<void> answer(Pointer self, AskerPtr asker, mcp::Message request);
  // Reads the files of its variables or headers, anew at each start.
  [[nodiscard]] Status add_secrets();
  [[nodiscard]] std::string remote_program() const;
  [[nodiscard]] json::Value client_meta() const;
  void take(mcp::Message message);
  // The one that it speaks of now; nullptr: none, or it cannot be known which.
  [[nodiscard]] AskerPtr sole_asker() const;

  bridge::LauncherClient& launcher_;
  const Setup setup_;
  ServerHello hello_;
  std::list<AskerPtr> askers_;  // of requests under way
  std::size_t asked_back_ = 0;  // its own requests that are not answered
  Program::Pointer program_;
  LinePeer::Pointer peer_;
  std::string last_tail_;
  std::string remote_settings_;  // of the program that reaches a server of the network
  Supervisor supervisor_;
};

}  // namespace caisson::services
