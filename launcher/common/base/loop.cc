#include "launcher/common/base/loop.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/common/base/sys.h"

namespace caisson {

Result<std::unique_ptr<Loop>> Loop::create(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int s : signals) sigaddset(&set, s);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return sys_error("sigprocmask");
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), signal_fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!epoll || !signal_fd) return sys_error("create event loop");
  std::unique_ptr<Loop> loop(new Loop(std::move(epoll), std::move(signal_fd)));
  Loop* self = loop.get();
  TRY(loop->watch(loop->signal_fd_.get(), EPOLLIN, [self](std::uint32_t) { self->read_signals(); }));
  return loop;
}

Status Loop::watch(int fd, std::uint32_t events, Ready ready) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return sys_error("epoll_ctl add");
  watches_[fd] = std::make_shared<Ready>(std::move(ready));
  return {};
}

Status Loop::rewatch(int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) return sys_error("epoll_ctl mod");
  return {};
}

void Loop::unwatch(int fd) {
  if (watches_.erase(fd) == 0) return;
  unwatched_.insert(fd);
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // fails only when it is gone already
}

Loop::TimerId Loop::after(std::int64_t delay_us, std::function<void()> fire) {
  const TimerId id = next_timer_++;
  const std::int64_t due = sys::monotonic_us() + std::max<std::int64_t>(delay_us, 0);
  timers_.emplace(std::pair(due, id), std::move(fire));
  timer_due_[id] = due;
  return id;
}

void Loop::cancel(TimerId id) {
  if (const auto timer = timer_due_.extract(id); !timer.empty()) timers_.erase({timer.mapped(), id});
}

int Loop::next_timeout_ms() {
  if (timers_.empty()) return -1;
  const std::int64_t left = timers_.begin()->first.first - sys::monotonic_us();
  return static_cast<int>(std::clamp<std::int64_t>((left + 999) / 1000, 0, 60'000));
}

void Loop::put_off_timers(std::int64_t by_us) {
  std::map<std::pair<std::int64_t, TimerId>, std::function<void()>> later;
  for (auto& [key, fire] : timers_)
    later.emplace(std::pair(timer_due_[key.second] = key.first + by_us, key.second), std::move(fire));
  timers_ = std::move(later);
}

// Timers are others' deadlines, and count the time in which those were listened to. A loop that comes late to them has not read
// yet what came in time. Once: a machine that is always late fires all the same.
void Loop::fire_timers() {
  constexpr std::int64_t kLateUs = 500'000;
  const std::int64_t now = sys::monotonic_us();
  const std::int64_t late = timers_.empty() ? 0 : now - timers_.begin()->first.first;
  if (late > kLateUs && !std::exchange(late_, true)) return put_off_timers(late + kLateUs);
  if (late >= 0) late_ = false;
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto timer = timers_.extract(timers_.begin());
    timer_due_.erase(timer.key().second);
    timer.mapped()();
  }
}

// A callback of reap() may kill what is not announced yet: a session's cgroup, whose first process is then reaped before its pid
// is read. Without the look here that session would never end, nor the launcher. A pid is not given out again so soon.
void Loop::on_exit(pid_t pid, Exited exited) {
  children_[pid] = std::move(exited);
  siginfo_t info;
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD) return;
  after(0, [this, pid] {
    if (const auto child = children_.extract(pid); !child.empty()) child.mapped()({.signaled = true, .status = SIGKILL});
  });
}

void Loop::on_signal(int signal, std::function<void()> f) {
  signals_[signal] = std::move(f);
  if (unheard_.erase(signal) != 0) after(0, signals_[signal]);
}

void Loop::read_signals() {
  signalfd_siginfo info{};
  while (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (const auto it = signals_.find(signal); it != signals_.end()) it->second();
    else unheard_.insert(signal);
  }
  reap();
}

void Loop::reap() {
  announce();
  for (;;) {
    int status = 0;
    ChildExit exit;
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &exit.usage);
    if (pid <= 0) return;
    exit.signaled = WIFSIGNALED(status);
    exit.status = exit.signaled ? WTERMSIG(status) : WEXITSTATUS(status);
    if (const auto child = children_.extract(pid); !child.empty()) child.mapped()(exit);
  }
}

Status Loop::run(const std::function<bool()>& done) {
  running_ = true;
  std::array<epoll_event, 64> events;
  while (running_ && !(done && done())) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), next_timeout_ms());
    if (n < 0 && errno != EINTR) return sys_error("epoll_wait");
    unwatched_.clear();
    for (int i = 0; i < n && running_; ++i) {
      const auto it = watches_.find(events[static_cast<std::size_t>(i)].data.fd);
      // Removed by an earlier callback of this round. A new watch of the same number gets its events in the next round.
      if (it == watches_.end() || unwatched_.contains(it->first)) continue;
      (*std::shared_ptr(it->second))(events[static_cast<std::size_t>(i)].events);  // held, for it may remove itself
    }
    fire_timers();
  }
  return {};
}

}  // namespace caisson
