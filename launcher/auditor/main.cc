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
#include <map>
#include <memory>
#include <vector>

#include "launcher/auditor/messages.h"
#include "launcher/auditor/notify.h"
#include "launcher/auditor/seal.h"
#include "launcher/auditor/watch.h"
#include "launcher/base/scm.h"

namespace caisson::auditor {
namespace {

constexpr std::int64_t kFlushUs = 2'000;    // records wait so long for others, to be read with them
constexpr std::int64_t kCountUs = 200'000;  // between two aggregates
constexpr std::uint64_t kSocketKey = 0;

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
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kSocketKey;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, kSocketFd, &event) != 0) return 3;
    outbox_.put(part(Type::ready, "", ""));
    flush_us_ = 1;
    std::array<epoll_event, 64> events;
    for (;;) {
      tick();
      const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
      if (n < 0 && errno != EINTR) return 4;
      for (int i = 0; i < n; ++i) {
        const epoll_event& e = events[static_cast<std::size_t>(i)];
        if (e.data.u64 != kSocketKey) listen(e.data.u64, e.events);
        else if (const int end = take_orders(e.events); end >= 0) return end;
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
    const auto it = std::ranges::find_if(watches_, [&](const auto& w) { return w.second->session() == order->session; });
    if (it == watches_.end()) return -1;  // it told of its end by itself
    it->second->end(now_us(), sink_);
    forget(it);
    return -1;
  }

  int add(const Order& order, Fd listener) {
    prefer_sync_wake_up(listener.get());
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = ++last_key_;
    // A session with a listener that nobody asks would hang; closed, its calls are answered ENOSYS.
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener.get(), &event) != 0) return 7;
    // The sessions of a policy have the same text.
    if (refusals_ == nullptr || *refusals_ != order.text) refusals_ = std::make_shared<const std::string>(order.text);
    watches_.emplace(last_key_, std::make_unique<Watch>(order.session, std::move(listener), refusals_));
    return -1;
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
    epoll_event event{};
    event.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = kSocketKey;
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, kSocketFd, &event);
  }

  int timeout_ms() const {
    std::int64_t due = count_us_;
    if (flush_us_ != 0 && !blocked_ && (due == 0 || flush_us_ < due)) due = flush_us_;
    if (due == 0) return -1;
    return static_cast<int>(std::clamp<std::int64_t>((due - now_us() + 999) / 1000, 0, 1000));
  }

  const Fd epoll_, proc_;
  Sink sink_;
  Outbox outbox_;
  TokenBucket all_{kAllBurst, kAllPerSecond};
  std::map<std::uint64_t, std::unique_ptr<Watch>> watches_;
  std::shared_ptr<const std::string> refusals_;
  std::uint64_t last_key_ = kSocketKey;
  std::int64_t flush_us_ = 0, count_us_ = 0;  // 0: nothing to do
  bool blocked_ = false;                      // the launcher does not read
};

int serve() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Not dumpable: who shares our uid (T1) cannot open what we hold.
  if (!epoll || !proc || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return 1;
  Auditor auditor(std::move(epoll), std::move(proc));
  if (!seal()) return 2;
  return auditor.run();
}

}  // namespace
}  // namespace caisson::auditor

int main() { return caisson::auditor::serve(); }
