// Sockets that the session's processes have and of which the connector keeps a copy, until one is connected. The copy is the same
// open socket: its options, its flags, and whoever waits for it by epoll(7) know nothing of the connector.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "launcher/common/base/fd.h"

namespace caisson::connector {

struct Kept {
  Fd fd;
  std::uint64_t inode = 0;
  int family = AF_INET;
};

// Bound to 127.0.0.1 and a free port: that is known to the door before the connection, and whoever listens on it is reached by
// nobody outside. Error: an errno.
[[nodiscard]] int make_socket(int family, int type, int protocol, Kept& made);
// The port that it is bound to; 0: it is not bound to the loopback any more.
[[nodiscard]] std::uint16_t bound_port(const Kept& kept);
// Connects it to that port of 127.0.0.1: 0 or an errno.
[[nodiscard]] int connect_to(const Kept& kept, std::uint16_t port);

class Sockets {
 public:
  static constexpr std::size_t kMost = 256;  // the oldest goes: it can be connected by nobody any more
  void keep(Kept kept);
  [[nodiscard]] const Kept* find(std::uint64_t inode) const;
  [[nodiscard]] std::optional<Kept> take(std::uint64_t inode);

 private:
  std::deque<Kept> kept_;
};

}  // namespace caisson::connector
