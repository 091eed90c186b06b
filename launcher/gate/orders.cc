#include "launcher/gate/orders.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "launcher/common/base/scm.h"

namespace caisson::gate {

void Orders::open(int socket) {
  close();
  socket_ = socket;
}

void Orders::close() {
  socket_ = -1;
  messages_.clear(), waiting_.clear(), states_.clear();
  count_ = 0;
  blocked_ = false;
  loop_.cancel(std::exchange(late_, 0));
  loop_.cancel(std::exchange(retry_, 0));
}

void Orders::message(std::string text, const std::vector<int>& fds) {
  if (socket_ < 0) return;
  const bool first = messages_.empty() && (saying_ || waiting_.empty());
  if (first && !blocked_ && put(text, fds)) return;
  if (socket_ >= 0) keep(std::move(text), fds);
}

// The descriptors are their owner's, who may close them before their turn comes.
void Orders::keep(std::string text, const std::vector<int>& fds) {
  Message kept{.text = std::move(text), .fds = {}};
  for (const int fd : fds) kept.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!std::ranges::all_of(kept.fds, [](const Fd& fd) { return static_cast<bool>(fd); }))
    return give_up("cannot be told its orders: " + std::string(errno_name(errno)));
  if (saying_) return messages_.push_back(std::move(kept));
  if (++count_ > kMostMessages) return give_up("does not take its orders: too many wait");
  waiting_.push_back({.message = std::move(kept), .what = {}, .say = {}});
}

void Orders::state(std::string what, std::function<void()> say) {
  if (socket_ < 0 || !states_.insert(what).second) return;
  waiting_.push_back({.message = {}, .what = std::move(what), .say = std::move(say)});
  if (!blocked_) flush();
}

void Orders::flush() {
  if (socket_ < 0 || saying_) return;
  const bool waited = std::exchange(blocked_, false);
  while (socket_ >= 0 && !blocked_ && !(messages_.empty() && waiting_.empty())) next();
  if (waited && !blocked_ && socket_ >= 0) (void)loop_.rewatch(socket_, EPOLLIN);
}

void Orders::next() {
  if (!messages_.empty()) {
    std::vector<int> fds;
    std::ranges::transform(messages_.front().fds, std::back_inserter(fds), &Fd::get);
    if (put(messages_.front().text, fds)) messages_.pop_front();
    return;
  }
  Waiting turn = std::move(waiting_.front());
  waiting_.pop_front();
  if (turn.what.empty()) {
    --count_;
    return messages_.push_back(std::move(turn.message));
  }
  states_.erase(turn.what);
  saying_ = true;
  turn.say();
  saying_ = false;
}

bool Orders::put(const std::string& text, const std::vector<int>& fds) {
  if (scm::send(socket_, text.data(), text.size(), fds.data(), fds.size(), MSG_DONTWAIT) >= 0) {
    loop_.cancel(std::exchange(late_, 0));
    return true;
  }
  const int error = errno;
  // ETOOMANYREFS: descriptors of ours are on their way in sockets that nobody has read yet (unix(7)).
  const bool full = error == EAGAIN, short_of = error == ENOBUFS || error == ETOOMANYREFS;
  if (!full && !short_of) return give_up("does not take its orders: " + std::string(errno_name(error))), false;
  blocked_ = true;
  if (full) (void)loop_.rewatch(socket_, EPOLLIN | EPOLLOUT);
  else if (retry_ == 0) retry_ = loop_.after(kRetryUs, [this] { retry_ = 0, flush(); });
  if (late_ == 0) late_ = loop_.after(kPatienceUs, [this] { late_ = 0, give_up("does not take its orders"); });
  return false;
}

void Orders::give_up(const std::string& why) {
  close();
  stuck_(why);
}

}  // namespace caisson::gate
