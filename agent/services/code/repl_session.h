// ReplSession: an interpreter that keeps its variables, in a session of its own, and runs one job after the other.
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
  int waiting = 0;  // requests that use it or wait for it
  bool closed = false;

  void touch();
  [[nodiscard]] bridge::Clock::time_point idle_until() const { return last_used + std::chrono::seconds(max_idle_s); }
  [[nodiscard]] bool busy() const { return waiting > 0; }
  [[nodiscard]] bool alive() const { return !closed && interpreter.session->alive() && interpreter.command->running(); }

  // From now on it outlives the agent; the members below are kept.
  void keep();
  void save();
  // Restores a session of the previous agent; the caller attaches its program. nullptr: its record is not complete.
  [[nodiscard]] static std::shared_ptr<ReplSession> restore(const std::shared_ptr<CodeContext>& context, Language language,
                                                            const std::shared_ptr<bridge::SessionHandle>& handle,
                                                            Keep::Left session, Keep::Left command);
  // Called with the first turn. Waits for the end of the job that ran when the previous agent ended, and drops its output. At its
  // timeout the job is interrupted; if that has no effect, the session ends.
  [[nodiscard]] static task<void> settle(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher);

  // Called with the turn. At its timeout the job is interrupted; if that has no effect, the session ends and is `closed`.
  // not_found: its cwd or a file could not be used.
  [[nodiscard]] static task<CodeOutcome> run(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher, CodeJob job);

 private:
  struct Marks;
  // Waits for the end of the job. At the deadline the job is interrupted (timed_out). False: that had no effect, and the session
  // has ended.
  [[nodiscard]] static asio::awaitable<bool> await_job(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher,
                                                       Marks& marks, bridge::Clock::time_point deadline, bool& timed_out);

  Keep::Record record_;
  std::int64_t until_ns_ = 0;                  // real time: deadline of the running job; 0: none runs
  std::uint64_t out_next_ = 0, err_next_ = 0;  // where the next job's output begins; it includes output between two jobs
};

}  // namespace caisson::services
