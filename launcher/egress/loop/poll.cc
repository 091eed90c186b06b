#include "launcher/egress/loop/poll.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::egress {

Result<std::unique_ptr<Poll>> Poll::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return sys_error("epoll_create1");
  return std::unique_ptr<Poll>(new Poll(std::move(epoll)));
}

Poll::Poll(Fd epoll) : epoll_(std::move(epoll)), now_us_(sys::monotonic_us()) {}

Status Poll::watch(int fd, std::uint32_t events, Source& source) {
  epoll_event event{.events = events, .data = {.ptr = &source}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return sys_error("watch a descriptor");
  return {};
}

Status Poll::rewatch(int fd, std::uint32_t events, Source& source) {
  epoll_event event{.events = events, .data = {.ptr = &source}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) return sys_error("watch a descriptor");
  return {};
}

void Poll::unwatch(int fd, Source& source) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (int i = at_ + 1; i < count_; ++i)
    if (auto& event = events_[static_cast<std::size_t>(i)]; event.data.ptr == &source) event.data.ptr = nullptr;
}

void Poll::Timer::set(std::int64_t due_us) {
  clear();
  due_us_ = std::max<std::int64_t>(due_us, 1);
  poll_.timers_.emplace(due_us_, this);
}

void Poll::Timer::clear() {
  if (due_us_ != 0) poll_.timers_.erase({std::exchange(due_us_, 0), this});
}

int Poll::timeout_ms() const {
  if (!later_.empty()) return 0;
  if (timers_.empty()) return -1;
  return static_cast<int>(std::clamp<std::int64_t>((timers_.begin()->first - sys::monotonic_us() + 999) / 1000, 0, 60'000));
}

// Those that are due now. One that sets itself to a time that has passed waits for the next turn, so that no timer keeps events
// from being heard. What is called is a copy: the timer may end with its owner meanwhile.
void Poll::fire_timers() {
  for (std::size_t left = timers_.size(); left > 0 && !timers_.empty() && timers_.begin()->first <= now_us_; --left) {
    Timer* const timer = timers_.begin()->second;
    timer->clear();
    void* what = timer->what_;
    timer->fire_(&what);
  }
}

Status Poll::run(const std::function<bool()>& done) {
  while (!done()) {
    count_ = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms());
    if (count_ < 0 && errno != EINTR) return sys_error("epoll_wait");
    now_us_ = sys::monotonic_us();
    for (at_ = 0; at_ < count_; ++at_) {
      const epoll_event event = events_[static_cast<std::size_t>(at_)];
      if (event.data.ptr != nullptr) static_cast<Source*>(event.data.ptr)->ready(event.events);
    }
    count_ = at_ = 0;
    fire_timers();
    for (const auto& f : std::exchange(later_, {})) f();
  }
  return {};
}

}  // namespace caisson::egress
