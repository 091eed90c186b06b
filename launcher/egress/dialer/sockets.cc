#include "launcher/egress/dialer/sockets.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace caisson::egress {
namespace {

Fd socket_of(const Address& address, int type) {
  return Fd(::socket(address.v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Connected failed(int error) {
  Connected out;
  out.error = error;
  return out;
}

bool is_own(const Address& address) {
  constexpr std::uint16_t kAnyPort = 9;
  const Fd fd = datagrams_to(address, kAnyPort);
  if (!fd) return errno != ENETUNREACH && errno != EHOSTUNREACH && errno != EAFNOSUPPORT;  // there, connecting says why it fails
  SocketAddress from;
  from.size = sizeof from.v6;
  const SocketAddress to = socket_address(address, kAnyPort);
  if (::getsockname(fd.get(), &from.any, &from.size) != 0) return true;
  if (address.v6) return std::memcmp(&from.v6.sin6_addr, &to.v6.sin6_addr, 16) == 0;
  return std::memcmp(&from.v4.sin_addr, &to.v4.sin_addr, 4) == 0;
}

}  // namespace

bool OwnAddresses::has(const Address& address, std::int64_t now_us) {
  if (now_us - since_us_ >= kKeepUs || known_.size() >= kMost) known_.clear(), since_us_ = now_us;
  const auto known = known_.find(address);
  return known != known_.end() ? known->second : known_[address] = is_own(address);
}

SocketAddress socket_address(const Address& address, std::uint16_t port) {
  SocketAddress out;
  std::memset(&out, 0, sizeof out);
  if (address.v6) {
    out.v6.sin6_family = AF_INET6;
    out.v6.sin6_port = htons(port);
    std::memcpy(&out.v6.sin6_addr, address.bytes.data(), 16);
    out.size = sizeof out.v6;
  } else {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(port);
    std::memcpy(&out.v4.sin_addr, address.bytes.data(), 4);
    out.size = sizeof out.v4;
  }
  return out;
}

Fd datagrams_to(const Address& address, std::uint16_t port) {
  Fd fd = socket_of(address, SOCK_DGRAM);
  const SocketAddress to = socket_address(address, port);
  if (fd && ::connect(fd.get(), &to.any, to.size) != 0) fd.reset();
  return fd;
}

Task<Connected> connect_to(Poll& poll, Address address, std::uint16_t port, std::int64_t deadline_us) {
  Fd fd = socket_of(address, SOCK_STREAM);
  if (!fd) co_return failed(errno);
  const SocketAddress to = socket_address(address, port);
  const bool at_once = ::connect(fd.get(), &to.any, to.size) == 0;
  if (!at_once && errno != EINPROGRESS) co_return failed(errno);
  // Watched only now: of a socket that does not connect yet, epoll reports that it hung up.
  Stream stream(poll, std::move(fd));
  int error = 0;
  socklen_t size = sizeof error;
  if (!at_once) {
    const bool stirred = co_await Stirred(deadline_us, stream);
    if (!stirred) co_return failed(ETIMEDOUT);
  }
  if (::getsockopt(stream.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) co_return failed(error);
  Connected out;
  out.fd = stream.take();
  co_return out;
}

}  // namespace caisson::egress
