// Supervisor: keeps one program of a ProgramSpec in service. It starts the program when a request needs it, once for all who
// wait; starts it again after it failed, with growing pauses; ends it when it is idle or no longer wanted; and continues with
// one that the previous agent started. The program's owner puts the protocol on each run (ProgramSpec::opened).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/services/common/roster.h"
#include "agent/services/program/program.h"

namespace caisson::services {

class Supervisor {
 public:
  // failing: a start would have to wait, because the program failed several times in a row.
  enum class State { stopped, starting, ready, failing };
  struct Health {
    State state = State::stopped;
    std::uint64_t starts = 0;
    unsigned failures = 0;  // in a row
    std::optional<Error> last_error;
  };

  Supervisor(bridge::LauncherClient& launcher, ProgramSpec spec);
  // Leaves a program that runs to the launcher, which ends it with the agent unless it is kept.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The program, ready to serve; started if there is none. Every request that waited for a start gets its outcome. unavailable:
  // it failed too often to be tried again now.
  [[nodiscard]] task<Program::Pointer> program() { return obtain(shared_); }
  // Continues with a program of the previous agent. It counts as ready: its owner's first request shows whether it answers.
  Program::Pointer adopt(std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started);
  // Ends it, also while it starts: that start fails. The next request starts it again, if restarts are allowed.
  [[nodiscard]] task<void> stop(std::string reason);
  // As stop(), for one that has ended with its workspace; the next request starts another one.
  void forget(std::string reason);
  // Failures so far count no more: the next request starts it at once.
  void try_again() { shared_->try_again(); }
  [[nodiscard]] Health health() const;

  // For the next start; what runs is not touched.
  [[nodiscard]] ProgramSpec& spec() { return shared_->spec; }
  void before_start(std::function<void(ProgramSpec&)> change) { shared_->before_start = std::move(change); }
  // While it returns true the program is not idle.
  void set_busy(std::function<bool()> busy) { shared_->busy = std::move(busy); }

 private:
  // Shared with its coroutines, which may outlive it for a moment.
  struct Shared {
    Shared(bridge::LauncherClient& client, ProgramSpec row)
        : launcher(client), spec(std::move(row)), changed(client.executor()) {}
    bridge::LauncherClient& launcher;
    ProgramSpec spec;
    std::function<void(ProgramSpec&)> before_start;
    std::function<bool()> busy;
    Program::Pointer current;  // starting or ready
    bool starting = false, ready = false, over = false;
    std::uint64_t starts = 0;
    std::uint64_t generation = 0;  // of stop() and forget(): a start of an older one is not wanted
    std::string stop_reason;
    unsigned failures = 0;
    bridge::Clock::time_point ready_since, last_used, next_start;
    std::optional<Error> last_error;  // of the last run, unless its end was asked for
    bridge::Notifier changed;

    [[nodiscard]] bool serves() const { return ready && current->alive(); }
    [[nodiscard]] bool refuses() const;  // until next_start
    void count_failure(const Error& why);
    void let_go(std::string reason);
    void try_again();
  };
  struct Starting;
  static task<Program::Pointer> obtain(std::shared_ptr<Shared> shared);
  static task<Program::Pointer> start(std::shared_ptr<Shared> shared);
  static task<void> close_if_idle(std::shared_ptr<Shared> shared);
  static void watch(const std::shared_ptr<Shared>& shared, const Program::Pointer& program);

  std::shared_ptr<Shared> shared_;
  Roster roster_;
};

}  // namespace caisson::services
