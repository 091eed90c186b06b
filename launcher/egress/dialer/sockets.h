// The dialer's sockets: the only ones that anything of egress makes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <optional>

#include "launcher/common/base/task.h"
#include "launcher/egress/list/host.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t size;
};
[[nodiscard]] SocketAddress socket_address(const Address& address, std::uint16_t port);

// A datagram socket that sends to this address alone and hears this address alone, from a port of the kernel's choice.
[[nodiscard]] Fd datagrams_to(const Address& address, std::uint16_t port);

// Whether an address is one of this container's own: then what listens there, the agent's API for one, trusts its callers as far
// as it would one from inside. The kernel is asked which source it would take; nothing is sent. Also true where it cannot be
// asked. An answer is kept for a second: it costs three system calls, and addresses of a container change when its operator
// changes its networks.
class OwnAddresses {
 public:
  [[nodiscard]] bool has(const Address& address, std::int64_t now_us);

 private:
  static constexpr std::size_t kMost = 256;
  static constexpr std::int64_t kKeepUs = 1'000'000;
  std::map<Address, bool> known_;
  std::int64_t since_us_ = 0;
};

struct Connected {
  Fd fd;
  int error = 0;  // errno, where there is no descriptor
};
[[nodiscard]] Task<Connected> connect_to(Poll& poll, Address address, std::uint16_t port, std::int64_t deadline_us);

}  // namespace caisson::egress
