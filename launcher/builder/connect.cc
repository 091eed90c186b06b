#include "launcher/builder/connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

namespace caisson::confine {
namespace {

// A connected socket, or -1 and errno.
int connected(const sockaddr* address, socklen_t size) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int error = ::connect(fd, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {  // the queue of a listener that accepts nothing is full
    pollfd ready{fd, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (::poll(&ready, 1, kConnectMs) != 1) error = ETIMEDOUT;
    else if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  }
  if (error == 0) return fd;
  ::close(fd);
  errno = error;
  return -1;
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
  int fd = connected(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  if (const int error = errno; fd < 0 && error == ECONNREFUSED) {
    fd = connected(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    if (fd < 0) errno = error;  // where IPv6 is off, its error says nothing
  }
  steps.done(Step::done, fd < 0 ? errno : 0);
  steps.flush(&fd, fd < 0 ? 0 : 1);
  ::_exit(0);
}

}  // namespace caisson::confine
