#include "launcher/connector/sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace caisson::connector {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// 127.0.0.1 as a socket of that family names it.
Address loopback(int family, std::uint16_t port) {
  Address out;
  if (family == AF_INET) {
    const sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    out.size = sizeof v4;
    std::memcpy(&out.storage, &v4, sizeof v4);
    return out;
  }
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  constexpr unsigned char kMapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  std::memcpy(&v6.sin6_addr, kMapped, sizeof kMapped);
  out.size = sizeof v6;
  std::memcpy(&out.storage, &v6, sizeof v6);
  return out;
}

}  // namespace

int make_socket(int family, int type, int protocol, Kept& made) {
  made.fd = Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | (type & SOCK_NONBLOCK), protocol));
  made.family = family;
  struct stat st{};
  const Address any_port = loopback(family, 0);
  if (!made.fd || ::bind(made.fd.get(), any_port.get(), any_port.size) != 0 || ::fstat(made.fd.get(), &st) != 0) return errno;
  made.inode = st.st_ino;
  return 0;
}

std::uint16_t bound_port(const Kept& kept) {
  Address own;
  own.size = sizeof own.storage;
  if (::getsockname(kept.fd.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) return 0;
  sockaddr_in with_port;  // at the same place in both families
  std::memcpy(&with_port, &own.storage, sizeof with_port);
  const Address wanted = loopback(kept.family, ntohs(with_port.sin_port));
  const bool here = own.size == wanted.size && std::memcmp(&own.storage, &wanted.storage, own.size) == 0;
  return here ? ntohs(with_port.sin_port) : 0;
}

int connect_to(const Kept& kept, std::uint16_t port) {
  const Address door = loopback(kept.family, port);
  return ::connect(kept.fd.get(), door.get(), door.size) == 0 ? 0 : errno;
}

void Sockets::keep(Kept kept) {
  if (kept_.size() >= kMost) kept_.pop_front();
  kept_.push_back(std::move(kept));
}

const Kept* Sockets::find(std::uint64_t inode) const {
  const auto it = std::ranges::find(kept_, inode, &Kept::inode);
  return it != kept_.end() ? &*it : nullptr;
}

std::optional<Kept> Sockets::take(std::uint64_t inode) {
  const auto it = std::ranges::find(kept_, inode, &Kept::inode);
  if (it == kept_.end()) return std::nullopt;
  Kept out = std::move(*it);
  kept_.erase(it);
  return out;
}

}  // namespace caisson::connector
