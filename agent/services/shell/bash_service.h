// BashService: all sessions of /v1/bash. Decisions where the contract is silent:
// - exec without session_id (or with "") makes a session; with an unknown one the route answers 404, as for shell.
// - sessions/create with an existing id returns that session.
// - exec_dir becomes the session's default once a command has really started there; relative paths start at the default.
// - without command_id, /output speaks of the newest command, /write to the newest running one, /kill to all running ones.
// - at the cap the session idle for longest is closed, implicit ones first; sessions with a running command never are.
// - a session that exec made is implicit until a request runs something in it by its id. It ends soon after its last command,
//   once no process of it lives. Its id, directory and kept output stay; a command by that id begins it anew (rest(), wake()).
#pragma once

#include <memory>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/config.h"
#include "agent/services/common/roster.h"
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
    std::optional<bool> isolated;  // absent: as an existing one is, else not
    bool implicit = false;
  };
  [[nodiscard]] task<SessionPtr> create(CreateParams params);
  [[nodiscard]] SessionPtr find(const std::string& session_id) const { return table_.find(session_id); }
  // Without those that rest.
  [[nodiscard]] std::vector<SessionPtr> sessions() const;

  // From now on sessions are made in this workspace of the launcher's. There is none when it is called.
  void serve_workspace(std::string name, std::string home) {
    config_.workspace = std::move(name);
    config_.directory = std::move(home);
  }

  // Starts a command; it goes on whatever becomes of the caller.
  [[nodiscard]] task<CommandPtr> start(SessionPtr session, BashExecParams params);
  // Waits until the command is over or the deadline passed.
  static asio::awaitable<void> wait_end(CommandPtr command, bridge::Clock::time_point deadline);
  // Waits for output beyond these offsets, or the end.
  static asio::awaitable<void> wait_output(CommandPtr command, std::uint64_t out, std::uint64_t err,
                                           bridge::Clock::time_point deadline);
  [[nodiscard]] task<void> kill(SessionPtr session, std::string signal);
  [[nodiscard]] task<void> close(SessionPtr session, std::string reason);

  // One that an agent before has left, in the launcher's session `handle`, with what it knew of it; false: it cannot be.
  [[nodiscard]] bool restore(const std::shared_ptr<bridge::SessionHandle>& handle, Keep::Left session,
                             std::vector<Keep::Left> commands);
  // Its running commands go on, once all sessions have been restored.
  [[nodiscard]] task<void> attach(const bridge::LeftSession& left);

 private:
  void insert(const SessionPtr& session);
  void hold(const SessionPtr& session, std::shared_ptr<bridge::SessionHandle> handle);
  // Ends what the launcher has of an implicit session, unless something in it lives.
  static task<void> rest(BashService* self, std::shared_ptr<const Life> life, SessionPtr session);
  [[nodiscard]] task<void> wake(SessionPtr session);
  // For a command's text. What is remembered of commands that are over makes room, the longest text first.
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
