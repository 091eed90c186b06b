#include "launcher/cli/relay.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"

namespace caisson::cli {

Result<std::unique_ptr<Relay>> Relay::start(Fd master, Loop& loop) {
  termios before{};
  if (::tcgetattr(0, &before) != 0) return sys_error("tcgetattr");
  std::unique_ptr<Relay> relay(new Relay(std::move(master), loop, before));
  termios raw = before;
  ::cfmakeraw(&raw);
  if (::tcsetattr(0, TCSADRAIN, &raw) != 0) return sys_error("tcsetattr");
  Relay* self = relay.get();
  TRY(loop.watch(0, EPOLLIN, [self](std::uint32_t) {
    if (!self->copy(0, self->master_.get())) self->loop_.unwatch(0);
  }));
  TRY(loop.watch(relay->master_.get(), EPOLLIN, [self](std::uint32_t) {
    if (!self->copy(self->master_.get(), 1)) self->loop_.unwatch(self->master_.get());
  }));
  return relay;
}

Relay::~Relay() {
  loop_.unwatch(0);
  loop_.unwatch(master_.get());
  (void)::tcsetattr(0, TCSADRAIN, &before_);  // nothing else can be done about a terminal that is gone
}

bool Relay::copy(int from, int to) {
  char buffer[8192];
  const ssize_t n = ::read(from, buffer, sizeof buffer);
  return n > 0 && sys::write_all(to, {buffer, static_cast<std::size_t>(n)}).has_value();
}

void Relay::resize() const {
  winsize size{};
  if (::ioctl(0, TIOCGWINSZ, &size) == 0) (void)::ioctl(master_.get(), TIOCSWINSZ, &size);
}

void Relay::drain() {
  pollfd p{master_.get(), POLLIN, 0};
  while (::poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0 && copy(master_.get(), 1)) {
  }
}

}  // namespace caisson::cli
