#include "launcher/egress/door/relay.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

namespace caisson::egress {
namespace {

constexpr std::int64_t kThrottleUs = 20'000;  // until a used-up budget is looked at again

}  // namespace

Relay::Relay(Stream& client, Stream& upstream, std::string first, Shared shared, std::int64_t idle_us,
             std::function<void(End)> ended)
    : poll_(client.poll()),
      up_{.from = client, .to = upstream, .rest = std::move(first)},
      down_{.from = upstream, .to = client},
      pipes_(shared.pipes),
      bytes_(shared.bytes),
      idle_us_(idle_us),
      moved_us_(poll_.now_us()),
      idle_timer_(poll_, [this] { idle(); }),
      again_(poll_, [this] { stirred(); }),
      ended_(std::move(ended)) {
  client.hear(this);
  upstream.hear(this);
  idle_timer_.set(moved_us_ + idle_us_);
}

Relay::~Relay() {
  up_.from.hear(nullptr);
  up_.to.hear(nullptr);
}

void Relay::stirred() {
  if (finished_) return;
  if (!pump(up_) || !pump(down_)) return finish(End::reset);
  // Who has ended its side is not read any more; that it is gone altogether shows only here.
  if ((up_.ended && up_.from.broken()) || (down_.ended && down_.from.broken())) return finish(End::reset);
  if (up_.shut && down_.shut) finish(End::done);
}

// The timer is not moved with every byte: it looks, when it fires, whether there were any.
void Relay::idle() {
  const std::int64_t due_us = moved_us_ + idle_us_;
  if (due_us <= poll_.now_us()) return finish(End::idle);
  idle_timer_.set(due_us);
}

// One end failed, or said nothing for too long: both are told by RST, so that neither takes what it has for all there is.
void Relay::finish(End end) {
  if (std::exchange(finished_, true)) return;
  idle_timer_.clear();
  again_.clear();
  if (end != End::done) up_.from.reset_on_close(), up_.to.reset_on_close();
  ended_(end);
}

// False: the connection failed.
bool Relay::pump(Direction& direction) {
  const std::uint64_t before = direction.moved;
  for (;;) {
    const std::size_t moved = direction.moved - before, allowed = bytes_.left(poll_.now_us());
    if (moved >= kATurn || allowed == 0) {
      again_.set(poll_.now_us() + (allowed == 0 ? kThrottleUs : 0));
      return true;
    }
    const Step done = step(direction, std::min({kATurn - moved, kBuffer, allowed}));
    if (done == Step::again) continue;
    return done == Step::blocked;
  }
}

Relay::Step Relay::step(Direction& direction, std::size_t most) {
  if (!direction.rest.empty()) return write_rest(direction);
  if (direction.in_pipe > 0) return drain_pipe(direction);
  if (direction.ended) {
    if (!std::exchange(direction.shut, true)) direction.to.end_of_writing();
    return Step::blocked;
  }
  // What cannot be written is not read: it waits in the kernel, whose limits slow the sender down.
  if (!direction.from.readable() || !direction.to.writable()) {
    if (direction.pipe.in) pipes_.give_back(std::exchange(direction.pipe, {}));
    return Step::blocked;
  }
  if (direction.moved >= kCopyFirst && !direction.pipe.in) direction.pipe = pipes_.take();
  return direction.pipe.in ? fill_pipe(direction, most) : copy(direction, most);
}

void Relay::count(Direction& direction, std::size_t bytes) {
  direction.moved += bytes;
  bytes_.spend(bytes);
  moved_us_ = poll_.now_us();
}

Relay::Step Relay::write_rest(Direction& direction) {
  if (!direction.to.writable()) return Step::blocked;
  const ssize_t sent = direction.to.write(direction.rest);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? Step::again : Step::failed;
  count(direction, static_cast<std::size_t>(sent));
  if (static_cast<std::size_t>(sent) == direction.rest.size()) direction.rest = std::string();
  else direction.rest.erase(0, static_cast<std::size_t>(sent));
  return Step::again;
}

Relay::Step Relay::drain_pipe(Direction& direction) {
  if (!direction.to.writable()) return Step::blocked;
  const ssize_t sent = ::splice(direction.pipe.out.get(), nullptr, direction.to.fd(), nullptr, direction.in_pipe,
                                SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (sent < 0 && errno == EAGAIN) direction.to.writing_blocks();
  if (sent <= 0) return sent < 0 && (errno == EAGAIN || errno == EINTR) ? Step::again : Step::failed;
  direction.in_pipe -= static_cast<std::size_t>(sent);
  count(direction, static_cast<std::size_t>(sent));
  return Step::again;
}

Relay::Step Relay::fill_pipe(Direction& direction, std::size_t most) {
  const ssize_t got =
      ::splice(direction.from.fd(), nullptr, direction.pipe.in.get(), nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (got < 0 && errno == EAGAIN) direction.from.reading_blocks();  // the pipe is empty: it is the socket that has nothing
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Step::again : Step::failed;
  direction.ended = got == 0;
  direction.in_pipe = static_cast<std::size_t>(got);
  return Step::again;
}

Relay::Step Relay::copy(Direction& direction, std::size_t most) {
  static std::array<char, kBuffer> buffer;
  const ssize_t got = direction.from.read({buffer.data(), std::min(most, buffer.size())});
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Step::again : Step::failed;
  if (got == 0) return direction.ended = true, Step::again;
  const auto size = static_cast<std::size_t>(got);
  const ssize_t sent = direction.to.write({buffer.data(), size});
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return Step::failed;
  const auto taken = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  count(direction, taken);
  if (taken < size) direction.rest.assign(buffer.data() + taken, size - taken);
  return Step::again;
}

}  // namespace caisson::egress
