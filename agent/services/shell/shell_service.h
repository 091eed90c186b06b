// ShellService: all sessions of /v1/shell. Decisions where the contract is silent:
// - exec without id makes a session and returns its id (the reference's log says so); such implicit sessions are few
//   (Config::max_implicit_sessions): the one idle for longest makes room for the next. Terminals of the WebSocket count too.
// - at the cap for all sessions the longest idle one is closed, implicit ones first; never a session with a command or a viewer.
// - an exec that waits in the queue keeps to its timeout and no_change_timeout, and stays queued when they pass.
#pragma once

#include <memory>
#include <string>

#include "agent/services/common/roster.h"
#include "agent/services/common/session_table.h"
#include "agent/services/shell/shell_session.h"

namespace caisson::services {

class ShellService {
 public:
  using SessionPtr = std::shared_ptr<ShellSession>;
  using CommandPtr = std::shared_ptr<ShellCommand>;

  ShellService(bridge::LauncherClient& launcher, Config config);
  ~ShellService();
  ShellService(const ShellService&) = delete;
  ShellService& operator=(const ShellService&) = delete;

  struct CreateParams {
    std::string id;  // "": generated
    std::string exec_dir;
    bool preserve_symlinks = false;
    std::optional<bool> isolated;  // absent: that of an existing session, else false
    bool implicit = false;
    bool for_person = false;
    bridge::PtySize size;
    std::string program;  // ShellSession::Setup's
  };
  // The session of that id if there is one.
  [[nodiscard]] task<SessionPtr> create(CreateParams params);
  [[nodiscard]] SessionPtr find(const std::string& id) const { return table_.find(id); }
  [[nodiscard]] std::vector<SessionPtr> sessions() const { return table_.all(); }
  [[nodiscard]] const Config& config() const { return config_; }

  // From now on sessions are made in this workspace. No session lives when it is called.
  void serve_workspace(std::string name, std::string home) {
    config_.workspace = std::move(name);
    config_.directory = std::move(home);
  }

  void hold(bool still) {
    for (const SessionPtr& session : sessions()) session->hold(still);
  }

  // Waits for a command as exec does. no_change_timeout in seconds, not positive: none.
  static asio::awaitable<ShellStatus> wait(CommandPtr command, bridge::Clock::time_point deadline, double no_change_timeout);
  [[nodiscard]] task<void> close(SessionPtr session, std::string reason);

  // Restores a session of the previous agent in the launcher's session `handle`. false: its records are not complete.
  [[nodiscard]] bool restore(const std::shared_ptr<bridge::SessionHandle>& handle, ShellSession::LeftParts parts);
  // Continues its terminal, once all sessions have been restored.
  [[nodiscard]] task<void> attach(const bridge::LeftSession& left);

 private:
  void insert(const SessionPtr& session);
  void forget(const SessionPtr& session, std::string reason);

  bridge::LauncherClient& launcher_;
  Config config_;
  std::shared_ptr<OutputBudget> budget_;
  SessionTable<ShellSession> table_;
  std::size_t creating_ = 0;
  Roster roster_;
};

}  // namespace caisson::services
