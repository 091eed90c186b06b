// ReplService: the REPLs of one language and one workspace. Decisions where the contract is silent:
// - an id that is not there makes a session with that id; requests for one session queue.
// - cwd of a request becomes the session's, as exec_dir of /v1/bash does; files are put there.
// - a session ends with its process; the next request for its id makes a new session, and its hint says so.
// - at the cap the longest idle session is closed, never a busy one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/services/code/repl_session.h"
#include "agent/services/common/counted.h"
#include "agent/services/common/roster.h"
#include "agent/services/common/session_table.h"

namespace caisson::services {

class ReplService final : public StatefulCode {
 public:
  using SessionPtr = std::shared_ptr<ReplSession>;

  ReplService(std::shared_ptr<CodeContext> context, Language language);
  ~ReplService() override;
  ReplService(const ReplService&) = delete;
  ReplService& operator=(const ReplService&) = delete;

  struct CreateParams {
    std::string session_id;  // "": generated
    std::string cwd;
    std::int64_t max_idle_s = 86'400;
    InstalledVersion interpreter;
  };
  struct Created {
    SessionPtr session;
    bool is_new;
  };
  [[nodiscard]] task<Created> create(CreateParams params);
  [[nodiscard]] SessionPtr find(const std::string& session_id);
  [[nodiscard]] std::vector<SessionPtr> sessions();
  [[nodiscard]] task<CodeOutcome> execute(std::string session_id, CodeJob job) override;
  // Moves an idle session to another directory.
  [[nodiscard]] task<void> move(SessionPtr session, std::string cwd);
  [[nodiscard]] task<void> close(SessionPtr session, std::string reason);
  // Restores a session of the previous agent; attach() must follow once all are restored. False: its records are not complete.
  [[nodiscard]] bool restore(const std::shared_ptr<bridge::SessionHandle>& handle, Keep::Left session, Keep::Left command);
  [[nodiscard]] task<void> attach(const bridge::LeftSession& left);
  // Its workspace has ended, and with it every session.
  void forget_all();

 private:
  [[nodiscard]] task<void> make_room();
  static task<void> settle(ReplService* self, std::shared_ptr<const Life> life, SessionPtr session,
                           std::shared_ptr<Counted<int>> busy);
  [[nodiscard]] task<CodeOutcome> run(SessionPtr session, CodeJob job);
  void sweep();
  [[nodiscard]] bridge::Clock::time_point next_check() const;
  void look_after_idle();

  std::shared_ptr<CodeContext> context_;
  Language language_;
  SessionTable<ReplSession> table_;
  bool expiring_ = false;
  Roster roster_;
};

}  // namespace caisson::services
