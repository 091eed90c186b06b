// BashService: all sessions of /v1/bash. Decisions where the contract is silent:
// - exec without session_id (or with "") makes a session; with an unknown one the route answers 404, as for shell.
// - sessions/create with an existing id returns that session.
// - exec_dir becomes the session's default once a command has really started there; relative paths start at the default.
// - without command_id, /output means the newest command, /write the newest running one, /kill all running ones.
// - at the cap the longest idle session is closed, implicit ones first; a session with a running command is never closed.
// - a session that exec made is implicit until a request runs something in it by its id. Its launcher session ends soon after its
//   last command, once none of its processes lives. Its id, directory and kept output stay; a command with that id starts a new
//   one (rest(), wake()).
#pragma once

#include <memory>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/roster.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/common/session_table.h"
#include "agent/services/shell/bash_session.h"

namespace caisson::services {

class BashService {
 public:
  using SessionPtr = std::shared_ptr<BashSession>;
  using CommandPtr = std::shared_ptr<Command>;

  BashService(bridge::LauncherClient& launcher, Config config);
  ~BashService();
  BashService(const BashService&) = delete;
  BashService& operator=(const BashService&) = delete;

  struct CreateParams {
    std::string session_id;  // "": generated
    std::string exec_dir, snapshot_path;
    std::optional<bool> isolated;  // absent: that of an existing session, else false
    bool implicit = false;
  };
  [[nodiscard]] task<SessionPtr> create(CreateParams params);
  [[nodiscard]] SessionPtr find(const std::string& session_id) const { return table_.find(session_id); }
  // Without resting ones.
  [[nodiscard]] std::vector<SessionPtr> sessions() const;

  // From now on sessions are made in this workspace. No session lives when it is called.
  void serve_workspace(std::string name, std::string home) {
    config_.workspace = std::move(name);
    config_.directory = std::move(home);
  }

  // Starts a command, which continues even if the caller goes away.
  [[nodiscard]] task<CommandPtr> start(SessionPtr session, BashExecParams params);
  // Waits for the end of the command or the deadline.
  static asio::awaitable<void> wait_end(CommandPtr command, bridge::Clock::time_point deadline);
  // Waits for output beyond these offsets, or the end.
  static asio::awaitable<void> wait_output(CommandPtr command, std::uint64_t out, std::uint64_t err,
                                           bridge::Clock::time_point deadline);
  [[nodiscard]] task<void> kill(SessionPtr session, std::string signal);
  [[nodiscard]] task<void> close(SessionPtr session, std::string reason);

  // Restores a session of the previous agent from its records, in the launcher's session `handle`. false: they are not complete.
  [[nodiscard]] bool restore(const std::shared_ptr<bridge::SessionHandle>& handle, Keep::Left session,
                             std::vector<Keep::Left> commands);
  // Continues its running commands, once all sessions have been restored.
  [[nodiscard]] task<void> attach(const bridge::LeftSession& left);

 private:
  void insert(const SessionPtr& session);
  void hold(const SessionPtr& session, std::shared_ptr<bridge::SessionHandle> handle);
  // Ends the launcher's session behind an implicit one, unless a process in it lives.
  static task<void> rest(BashService* self, std::shared_ptr<const Life> life, SessionPtr session);
  [[nodiscard]] task<void> wake(SessionPtr session);
  // Room for a command's text. Finished commands make room, the longest text first.
  [[nodiscard]] Result<http::Budget::Share> room_for_text(std::size_t bytes);
  [[nodiscard]] task<void> probe(SessionPtr session, std::string dir, std::string snapshot);
  void forget(const SessionPtr& session);
  static task<void> expire(BashService* self, std::shared_ptr<const Life> life);

  bridge::LauncherClient& launcher_;
  Config config_;
  std::shared_ptr<OutputBudget> budget_;
  SessionTable<BashSession> table_;
  std::size_t creating_ = 0;
  Roster roster_;
};

// "SIGTERM", "SIGKILL" or "SIGINT" from what clients write ("TERM", "sigterm", "15"); empty: not one of them.
[[nodiscard]] std::string kill_signal_name(std::string text);

}  // namespace caisson::services
