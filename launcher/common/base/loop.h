// The launcher's event loop: epoll over descriptors, one timer queue, signals by signalfd, children by pid. One thread.
// Callbacks may add and remove watches, their own included.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson {

struct ChildExit {
  bool signaled = false;
  int status = 0;  // exit code or signal number
  rusage usage{};
};

class Loop {
 public:
  using Ready = std::function<void(std::uint32_t events)>;
  using Exited = std::function<void(const ChildExit&)>;
  using TimerId = std::uint64_t;

  // Blocks SIGCHLD and `signals` in the process and reads them by signalfd from now on.
  [[nodiscard]] static Result<std::unique_ptr<Loop>> create(std::initializer_list<int> signals);

  [[nodiscard]] Status watch(int fd, std::uint32_t events, Ready ready);
  [[nodiscard]] Status rewatch(int fd, std::uint32_t events);
  void unwatch(int fd);  // before the descriptor is closed

  // It fires when `delay_us` have passed, or later: where the loop itself was late, what came meanwhile is heard first.
  TimerId after(std::int64_t delay_us, std::function<void()> fire);
  void cancel(TimerId id);

  // Called once, when that child of ours has been reaped. Children without a callback (orphans that were reparented to us)
  // are reaped silently. For one that was reaped so before this call, `exited` is called by the next turn, as if killed.
  void on_exit(pid_t pid, Exited exited);
  // Marks a child whose exit status is not needed as our own, so that a sweep does not kill it as an orphan.
  void expect(pid_t pid) {
    on_exit(pid, [](const ChildExit&) {});
  }
  // For an owner that goes away first: the child is then reaped silently.
  void forget_exit(pid_t pid) { children_.erase(pid); }
  [[nodiscard]] bool expects(pid_t pid) const { return children_.contains(pid); }
  // Runs before children are reaped, or taken for orphans: the moment to register those that only a socket tells of. True: one is
  // still to come. Until `owner` forgets it.
  void before_reap(const void* owner, std::function<bool()> f) { before_reap_[owner] = std::move(f); }
  void forget_before_reap(const void* owner) { before_reap_.erase(owner); }
  bool announce() {
    bool more = false;
    for (const auto& [owner, f] : before_reap_) more = f() || more;
    return more;
  }
  // One that came before is heard by the next turn.
  void on_signal(int signal, std::function<void()> f);

  // Until stop(), or until `done` says so. Errors: io, when epoll itself fails.
  [[nodiscard]] Status run(const std::function<bool()>& done = {});
  void stop() { running_ = false; }

 private:
  Loop(Fd epoll, Fd signals) : epoll_(std::move(epoll)), signal_fd_(std::move(signals)) {}
  void read_signals();
  void reap();
  [[nodiscard]] int next_timeout_ms();
  void fire_timers();
  void put_off_timers(std::int64_t by_us);

  Fd epoll_, signal_fd_;
  std::map<int, std::shared_ptr<Ready>> watches_;
  std::set<int> unwatched_;  // in this round
  std::map<std::pair<std::int64_t, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, std::int64_t> timer_due_;
  std::map<pid_t, Exited> children_;
  std::map<int, std::function<void()>> signals_;
  std::set<int> unheard_;  // signals that came before anybody listened
  std::map<const void*, std::function<bool()>> before_reap_;
  TimerId next_timer_ = 1;
  bool running_ = false;
  bool late_ = false;  // the timers were put off because we were late, and none was due since
};

}  // namespace caisson
