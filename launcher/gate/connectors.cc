#include "launcher/gate/connectors.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/egress/connector.h"

namespace caisson::gate {
namespace {

constexpr int kBacklog = 4096;  // as much as the kernel gives: a connect(2) that finds it full would keep its connector waiting

}  // namespace

Connectors::~Connectors() {
  for (const One& one : all_) loop_.unwatch(one.line.get());
  if (listener_) loop_.unwatch(builder_.get());
}

Status Connectors::listen() {
  Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in own{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof own;
  auto* address = reinterpret_cast<sockaddr*>(&own);
  if (!made || ::bind(made.get(), address, size) != 0 || ::listen(made.get(), kBacklog) != 0 ||
      ::getsockname(made.get(), address, &size) != 0)
    return sys_error("listen on the loopback");
  TRY(loop_.watch(builder_.get(), EPOLLIN, [this](std::uint32_t) { hear(); }));
  listener_ = std::move(made);
  port_ = ntohs(own.sin_port);
  return {};
}

// Said by a builder, which we trust as the launcher does. Its end is the workspace's, and that is told by the launcher.
void Connectors::hear() {
  char whose[egress::kMaxWhose];
  const scm::Received came = scm::receive(builder_.get(), whose, sizeof whose, MSG_DONTWAIT);
  One one{std::string(whose, came.size > 0 ? static_cast<std::size_t>(came.size) : 0), Fd(came.count > 0 ? came.fds[0] : -1)};
  for (std::size_t i = 1; i < came.count; ++i) ::close(came.fds[i]);
  if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (came.size == 0) return loop_.unwatch(builder_.get());
  const egress::Hello hello{port_};
  if (!one.line || came.cut() ||
      scm::send(one.line.get(), &hello, sizeof hello, nullptr, 0, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof hello))
    return;
  const auto made = all_.insert(all_.end(), std::move(one));
  // What it says is the door's to read: of us, only that it is gone.
  const Status watched = loop_.watch(made->line.get(), EPOLLHUP, [this, made](std::uint32_t) {
    loop_.unwatch(made->line.get());
    all_.erase(made);
  });
  if (!watched) return void(all_.erase(made));
  come_(*made);
}

}  // namespace caisson::gate
