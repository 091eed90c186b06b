// ReplSession: an interpreter that keeps its variables, in a session of its own, and the jobs that it is given one after the
// other.
#pragma once

#include <memory>
#include <string>

#include "agent/services/code/code_outcome.h"
#include "agent/services/program/warm_pool.h"

namespace caisson::services {

struct ReplSession {
  ReplSession(const asio::any_io_executor& executor, std::string i, Language l) : id(std::move(i)), language(l), turn(executor) {}

  const std::string id;
  bool implicit = false;  // all are evicted alike
  const Language language;
  InstalledVersion version;
  std::string cwd;
  std::int64_t created_ms = 0, last_used_ms = 0;  // real time, for clients
  bridge::Clock::time_point last_used;
  std::int64_t max_idle_s = 86'400;
  Interpreter interpreter;
  http::AsyncLock turn;
  int waiting = 0;  // requests that are in it or wait for it
  bool closed = false;

  void touch();
  [[nodiscard]] bridge::Clock::time_point idle_until() const { return last_used + std::chrono::seconds(max_idle_s); }
  [[nodiscard]] bool busy() const { return waiting > 0; }
  [[nodiscard]] bool alive() const { return !closed && interpreter.session->alive() && interpreter.command->running(); }

  // From now on it outlives the agent; what follows is kept.
  void keep();
  void save();
  // What an agent before has left of it; its program is the caller's to attach. nullptr: it is not whole.
  [[nodiscard]] static std::shared_ptr<ReplSession> restore(const std::shared_ptr<CodeContext>& context, Language language,
                                                            const std::shared_ptr<bridge::SessionHandle>& handle,
                                                            Keep::Left session, Keep::Left command);
  // The caller has the turn, the first one. Waits for the end of the job that ran when the agent before ended, if one did; what
  // it prints is nobody's. One that takes longer than it may ends, and one that is not impressed takes the session along.
  [[nodiscard]] static task<void> settle(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher);

  // The caller has the turn. A job that does not end in its time is interrupted; one that is not impressed takes the session
  // along, which is then `closed`. not_found: its cwd or a file was refused.
  [[nodiscard]] static task<CodeOutcome> run(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher, CodeJob job);

 private:
  struct Marks;
  // Until the job has ended, is told to, or its session has: false.
  [[nodiscard]] static asio::awaitable<bool> await_job(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher,
                                                       Marks& marks, bridge::Clock::time_point deadline, bool& timed_out);

  Keep::Record record_;
  std::int64_t until_ns_ = 0;                  // real time: how long the job that runs may; 0: none runs
  std::uint64_t out_next_ = 0, err_next_ = 0;  // where the next job's output begins: what came in between is shown with it
};

}  // namespace caisson::services
