#include "launcher/egress/loop/stream.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "launcher/common/base/sys.h"

namespace caisson::egress {

Stream::Stream(Poll& poll, Fd fd) : poll_(poll), fd_(std::move(fd)) {
  const int flags = ::fcntl(fd_.get(), F_GETFL);  // most do not block: they were made so
  hung_up_ = flags < 0 || ((flags & O_NONBLOCK) == 0 && !sys::set_nonblocking(fd_.get(), true));
}

Stream::~Stream() {
  if (watched_) poll_.unwatch(fd_.get(), *this);
}

ssize_t Stream::read(std::span<char> into) {
  const ssize_t got = ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
  // Less than was asked for is all there is, unless the end follows, whose edge may have been heard already.
  if (got < 0 ? errno == EAGAIN : got > 0 && static_cast<std::size_t>(got) < into.size() && !hung_up_) readable_ = false;
  return got;
}

ssize_t Stream::peek(std::span<char> into) { return ::recv(fd_.get(), into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT); }

ssize_t Stream::write(std::string_view bytes) {
  const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 ? errno == EAGAIN : static_cast<std::size_t>(sent) < bytes.size()) writable_ = false;
  return sent;
}

void Stream::end_of_writing() { (void)::shutdown(fd_.get(), SHUT_WR); }

void Stream::reset_on_close() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// The first time epoll reports what is so already. One that cannot be watched is as one whose peer is gone.
void Stream::hear(Hearer* hearer) {
  hearer_ = hearer;
  if (hearer == nullptr || watched_ || hung_up_) return;
  watched_ = static_cast<bool>(poll_.watch(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this));
  hung_up_ = !watched_;
}

Fd Stream::take() {
  if (std::exchange(watched_, false)) poll_.unwatch(fd_.get(), *this);
  return std::move(fd_);
}

void Stream::ready(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  if ((events & EPOLLERR) != 0) broken_ = true;
  if (hearer_ != nullptr) hearer_->stirred();
}

Stirred::Stirred(std::int64_t deadline_us, Stream& one, Stream* other)
    : deadline_us_(deadline_us), one_(one), other_(other), timer_(one.poll(), [this] {
        forget();
        waiting_.resume();
      }) {}

void Stirred::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  one_.hear(this);
  if (other_ != nullptr) other_->hear(this);
  timer_.set(deadline_us_);
}

void Stirred::stirred() {
  stirred_ = true;
  forget();
  waiting_.resume();
}

void Stirred::forget() {
  timer_.clear();
  one_.hear(nullptr);
  if (other_ != nullptr) other_->hear(nullptr);
}

Told::Told(Poll& poll, std::int64_t deadline_us) : deadline_us_(deadline_us), timer_(poll, [this] { waiting_.resume(); }) {}

void Told::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  timer_.set(deadline_us_);
}

// Whoever waits goes on at the end of this turn, so that the one who tells is not gone when this returns.
void Told::tell() {
  told_ = true;
  timer_.clear();
  if (waiting_) timer_.set(1);
}

}  // namespace caisson::egress
