#include "launcher/egress/loop/link.h"

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/egress/protocol.h"

namespace caisson::egress {
namespace {

constexpr int kMostATurn = 64;  // messages, so that one peer does not keep the loop

}  // namespace

Link::Link(Poll& poll, Fd fd, Heard heard, std::function<void()> ended)
    : poll_(poll), fd_(std::move(fd)), heard_(std::move(heard)), ended_(std::move(ended)) {
  if (!sys::set_nonblocking(fd_.get(), true) || !poll_.watch(fd_.get(), EPOLLIN, *this)) end();
}

Link::~Link() {
  if (open_) poll_.unwatch(fd_.get(), *this);
}

bool Link::say(std::string message, Fd fd, Fd second) {
  if (!open_ || waiting_.size() >= kMostWaiting) return false;
  waiting_.push_back({std::move(message), std::move(fd), std::move(second)});
  if (!blocked_) flush();
  return true;
}

void Link::flush() {
  while (open_ && !waiting_.empty()) {
    const Waiting& next = waiting_.front();
    const int fds[] = {next.fd.get(), next.second.get()};
    const std::size_t count = next.second ? 2 : next.fd ? 1 : 0;
    if (scm::send(fd_.get(), next.text.data(), next.text.size(), fds, count, MSG_DONTWAIT) < 0) {
      if (errno == EINTR) continue;
      // ETOOMANYREFS: descriptors of ours are on their way in sockets that nobody reads (unix(7)); the peer reads in time, or is
      // gone.
      if (errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS) return;  // seen as its end by the loop
      if (!std::exchange(blocked_, true)) (void)poll_.rewatch(fd_.get(), EPOLLIN | EPOLLOUT, *this);
      return;
    }
    waiting_.pop_front();
  }
  if (open_ && std::exchange(blocked_, false)) (void)poll_.rewatch(fd_.get(), EPOLLIN, *this);
}

void Link::end() {
  if (!std::exchange(open_, false)) return;
  poll_.unwatch(fd_.get(), *this);
  poll_.later([ended = ended_, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) ended();
  });
}

bool Link::hear_one() {
  static char buffer[kMaxText + 1024];
  const scm::Received came = scm::receive(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  std::vector<Fd> fds;
  for (std::size_t i = 0; i < came.count; ++i) fds.emplace_back(came.fds[i]);
  if (came.size <= 0) return end(), false;
  broken_ = came.cut() || !heard_({buffer, static_cast<std::size_t>(came.size)}, std::move(fds));
  if (broken_) end();
  return open_;
}

void Link::ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  for (int i = 0; i < kMostATurn; ++i)
    if (!hear_one()) return;
}

}  // namespace caisson::egress
