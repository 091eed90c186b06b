#include "launcher/egress/door/listener.h"

#include <sys/socket.h>

#include <cerrno>

#include "launcher/common/base/sys.h"

namespace caisson::egress {
namespace {

constexpr int kMostATurn = 32;
constexpr std::int64_t kPauseUs = 100'000;  // where no descriptor is left: what waits stays in the backlog

}  // namespace

Listener::Listener(Poll& poll, Fd fd, std::function<void(Fd)> accepted)
    : poll_(poll),
      fd_(std::move(fd)),
      accepted_(std::move(accepted)),
      pause_(poll, [this] { (void)poll_.rewatch(fd_.get(), EPOLLIN, *this); }) {}

Listener::~Listener() { poll_.unwatch(fd_.get(), *this); }

Status Listener::begin() {
  TRY(sys::set_nonblocking(fd_.get(), true));
  return poll_.watch(fd_.get(), EPOLLIN, *this);
}

void Listener::ready(std::uint32_t) {
  for (int i = 0; i < kMostATurn; ++i) {
    Fd client(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client) {
      accepted_(std::move(client));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    (void)poll_.rewatch(fd_.get(), 0, *this);
    return pause_.set(poll_.now_us() + kPauseUs);
  }
}

}  // namespace caisson::egress
