// caisson-auditor: answers the refused system calls of all sessions and tells the launcher of them. Its own process, so that no
// flood can keep the launcher from its work; unprivileged, because it handles what sessions throw at it. When it ends, however it
// ends, the kernel answers those calls with ENOSYS.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "launcher/auditor/messages.h"
#include "launcher/auditor/watch.h"
#include "launcher/common/base/scm.h"
#include "launcher/common/watching/notify.h"
#include "launcher/common/watching/observer_protocol.h"
#include "launcher/common/watching/seal.h"

namespace caisson::auditor {
namespace {

constexpr std::int64_t kFlushUs = 2'000;    // records wait so long for others, to be read with them
constexpr std::int64_t kCountUs = 200'000;  // between two aggregates
constexpr std::uint64_t kSocketKey = 0, kObserverKey = ~0ULL;

std::int64_t now_us() {
  timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

class Auditor {
 public:
  Auditor(Fd epoll, Fd proc) : epoll_(std::move(epoll)), proc_(std::move(proc)) {
    sink_.room = [this] { return outbox_.room(); };
    sink_.put = [this](Type type, const std::string& session, std::string text) {
      outbox_.put(part(type, session, text));
      // The launcher waits for the last word about a session.
      const std::int64_t due = now_us() + (type == Type::ended ? 0 : kFlushUs);
      if (flush_us_ == 0 || due < flush_us_) flush_us_ = due;
    };
  }

  // Until the launcher is gone. Anything else that ends it is said by the exit status.
  int run() {
    if (!poll_for(kSocketFd, kSocketKey)) return 3;
    outbox_.put(part(Type::ready, "", ""));
    flush_us_ = 1;
    std::array<epoll_event, 64> events;
    for (;;) {
      tick();
      const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
      if (n < 0 && errno != EINTR) return 4;
      for (int i = 0; i < n; ++i) {
        const epoll_event& e = events[static_cast<std::size_t>(i)];
        int end = -1;
        if (e.data.u64 == kSocketKey) end = take_orders(e.events);
        else if (e.data.u64 == kObserverKey) end = hear();
        else listen(e.data.u64, e.events);
        if (end >= 0) return end;
      }
    }
  }

 private:
  void listen(std::uint64_t key, std::uint32_t events) {
    const auto it = watches_.find(key);
    if (it == watches_.end()) return;  // released by an earlier event of this round
    const std::int64_t now = now_us();
    if ((events & EPOLLIN) != 0) {
      if (!it->second->answer(now, proc_.get(), all_, sink_)) forget(it);
      else if (it->second->counted() && count_us_ == 0) count_us_ = now + kCountUs;
    } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
      it->second->end(now, sink_);  // the last process under this filter is gone
      forget(it);
    }
  }

  // -1: go on. Else the exit status.
  int take_orders(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) want_writable(false);
    char buffer[kMaxMessage + 1];
    const scm::Received came = scm::receive(kSocketFd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (came.size < 0) return errno == EAGAIN || errno == EINTR ? -1 : 5;
    std::vector<Fd> fds(came.fds, came.fds + came.count);
    if (came.size == 0) return 0;
    const auto order = parse_order({buffer, static_cast<std::size_t>(came.size)}, fds.size());
    if (!order || came.cut()) return 6;
    if (order->type == Type::watch) return add(*order, std::move(fds.front()));
    if (order->type == Type::observer) {
      observer_ = std::move(fds.front());
      return poll_for(observer_.get(), kObserverKey) ? -1 : 7;
    }
    const auto it = std::ranges::find_if(watches_, [&](const auto& w) { return w.second->session() == order->session; });
    if (it == watches_.end()) return -1;  // it told of its end by itself
    // The observer may still have calls to tell of, and ends its own with the last word.
    if (it->second->observed()) return to_observer({ToObserver::Type::release, 0, it->first}, {}, -1) ? -1 : lose_observer();
    it->second->end(now_us(), sink_);
    forget(it);
    return -1;
  }

  // One call of a session whose paths are observed, or its end.
  int hear() {
    char buffer[kMaxTold + 1];
    const scm::Received came = scm::receive(observer_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    for (std::size_t i = 0; i < came.count; ++i) ::close(came.fds[i]);
    if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
    const auto told = parse_told({buffer, static_cast<std::size_t>(std::max<ssize_t>(came.size, 0))});
    if (!told || came.cut()) return lose_observer();
    const auto it = watches_.find(told->head.key);
    const std::int64_t now = now_us();
    if (told->head.type == Told::Type::gone) {
      if (it == watches_.end()) return -1;
      it->second->untold(told->head, now);
      it->second->end(now, sink_);
      forget(it);
      return -1;
    }
    std::uint32_t rest_ms = 0;
    if (it != watches_.end()) {
      rest_ms = it->second->told(*told, now, proc_.get(), all_, sink_);
      if (it->second->counted() && count_us_ == 0) count_us_ = now + kCountUs;
    }
    return to_observer({ToObserver::Type::answered, rest_ms, told->head.key}, {}, -1) ? -1 : lose_observer();
  }

  bool to_observer(const ToObserver& order, const std::vector<int>& refused, int listener) {
    std::string message(reinterpret_cast<const char*>(&order), sizeof order);
    message.append(reinterpret_cast<const char*>(refused.data()), refused.size() * sizeof(int));
    return scm::send(observer_.get(), message.data(), message.size(), &listener, listener >= 0 ? 1 : 0, MSG_DONTWAIT) >= 0;
  }

  // It was killed, or is not what it should be. Its sessions can open nothing any more, and the launcher ends them; what follows
  // this needs another one, which comes with another of us.
  int lose_observer() {
    observer_.reset();
    static constexpr const char* kEnded = "calls that name files answer ENOSYS: the session is ended";
    for (auto& [key, watch] : watches_)
      if (watch->observed()) watch->lose(now_us(), sink_, "observer_died", kEnded);
    while (!outbox_.empty()) {
      const std::string message = outbox_.next();
      if (scm::send(kSocketFd, message.data(), message.size(), nullptr, 0, 0) < 0) break;
      outbox_.taken();
    }
    return kLostObserver;
  }

  int add(const Order& order, Fd listener) {
    // The sessions of a policy have the same text.
    if (rules_ == nullptr || rules_->text != order.text) rules_ = Rules::parse(order.text);
    ++last_key_;
    if (rules_->observed) {
      watches_.emplace(last_key_, std::make_unique<Watch>(order.session, Fd(), rules_));  // else it would not hear of the loss
      const bool sent = to_observer({ToObserver::Type::watch, 0, last_key_}, refused_numbers(rules_->refusals), listener.get());
      return sent ? -1 : lose_observer();
    }
    prefer_sync_wake_up(listener.get());
    // A session with a listener that nobody asks would hang; closed, its calls are answered ENOSYS.
    if (!poll_for(listener.get(), last_key_)) return 7;
    watches_.emplace(last_key_, std::make_unique<Watch>(order.session, std::move(listener), rules_));
    return -1;
  }

  bool poll_for(int fd, std::uint64_t key) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // Closing the last descriptor of a listener takes it out of epoll.
  void forget(std::map<std::uint64_t, std::unique_ptr<Watch>>::iterator it) { watches_.erase(it); }

  void tick() {
    const std::int64_t now = now_us();
    if (count_us_ != 0 && now >= count_us_) {
      count_us_ = 0;
      for (auto& [key, watch] : watches_) {
        if (outbox_.room()) watch->put_counts(now, sink_);
        else if (watch->counted()) count_us_ = now + kCountUs;
      }
    }
    if (flush_us_ == 0 || blocked_ || (now < flush_us_ && outbox_.size() < Outbox::kMostParts)) return;
    while (!outbox_.empty()) {
      const std::string message = outbox_.next();
      if (scm::send(kSocketFd, message.data(), message.size(), nullptr, 0, MSG_DONTWAIT) < 0) {
        if (errno == EAGAIN) want_writable(true);
        return;  // other errors show as the socket's end
      }
      outbox_.taken();
    }
    flush_us_ = 0;
  }

  void want_writable(bool on) {
    blocked_ = on;
    epoll_event event{.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.u64 = kSocketKey}};
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, kSocketFd, &event);
  }

  int timeout_ms() const {
    std::int64_t due = count_us_;
    if (flush_us_ != 0 && !blocked_ && (due == 0 || flush_us_ < due)) due = flush_us_;
    if (due == 0) return -1;
    return static_cast<int>(std::clamp<std::int64_t>((due - now_us() + 999) / 1000, 0, 1000));
  }

  const Fd epoll_, proc_;
  Fd observer_;
  Sink sink_;
  Outbox outbox_;
  TokenBucket all_{kAllBurst, kAllPerSecond};
  std::map<std::uint64_t, std::unique_ptr<Watch>> watches_;
  std::shared_ptr<const Rules> rules_;
  std::uint64_t last_key_ = kSocketKey;
  std::int64_t flush_us_ = 0, count_us_ = 0;  // 0: nothing to do
  bool blocked_ = false;                      // the launcher does not read
};

int serve() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Not dumpable: who shares our uid (T1) cannot open what we hold.
  if (!epoll || !proc || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return 1;
  Auditor auditor(std::move(epoll), std::move(proc));
  if (!seal(Role::auditor)) return 2;
  return auditor.run();
}

}  // namespace
}  // namespace caisson::auditor

int main() { return caisson::auditor::serve(); }
