#include "launcher/builder/connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cerrno>

#include "launcher/common/wire/builder_protocol.h"

namespace caisson::confine {
namespace {

// A connected socket, or -1 and errno. One that fails is closed with this process.
int connected(const sockaddr* address, socklen_t size) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // The queue of a listener that accepts nothing may be full. This limit is connect's, too: socket(7).
  const timeval limit{.tv_sec = kConnectSeconds, .tv_usec = 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd, address, size) == 0 && ::fcntl(fd, F_SETFL, O_NONBLOCK) == 0) return fd;
  if (errno == EINPROGRESS) errno = ETIMEDOUT;
  return -1;
}

// A socket that listens, or -1 and errno.
int listening(sockaddr_in at) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  if (bound != 0 && errno == EADDRINUSE) at.sin_port = 0, bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  return bound == 0 && ::listen(fd, SOMAXCONN) == 0 ? fd : -1;
}

}  // namespace

void connect_child(const ChildArgs& args, unsigned port) {
  StepWriter steps(args.answer);
  // In ours the connection would be to the container's own servers.
  struct stat own{}, theirs{};
  if (::stat("/proc/self/ns/net", &own) != 0 || ::fstat(args.net_ns, &theirs) != 0) steps.failed(Step::net_ns, errno);
  if (own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino) steps.failed(Step::net_ns, EPERM);
  if (::setns(args.net_ns, CLONE_NEWNET) != 0) steps.failed(Step::net_ns, errno);
  const sockaddr_in v4{
      .sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = v4.sin_port, .sin6_addr = in6addr_loopback};
  int fd = (port & builder::kListens) != 0 ? listening(v4) : connected(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  if (const int error = errno; fd < 0 && error == ECONNREFUSED) {
    fd = connected(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    if (fd < 0) errno = error;  // where IPv6 is off, its error says nothing
  }
  steps.done(Step::done, fd < 0 ? errno : 0);
  steps.flush(&fd, fd < 0 ? 0 : 1);
  ::_exit(0);
}

}  // namespace caisson::confine
