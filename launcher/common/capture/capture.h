// Makes every TCP connection of a network namespace arrive at one listener, and every question about names at one socket,
// whatever address and port the program asked for. The caller has CAP_NET_ADMIN and CAP_NET_BIND_SERVICE there, which no session
// has: so no session can take the routes, the rules or the ports away.
//
//   routes   `local default dev lo` (IPv4, IPv6) in the table `local`: each address is one of this host. Only in that table do
//   the
//            kernel's own checks of source addresses (__ip_dev_find) take IPv4 addresses for local; in any other connect(2)
//            fails.
//   rules    table inet caisson: what begins a connection (SYN without ACK) goes to the listener of its family by tproxy, which
//            leaves the packet as it is: the accepted socket's own address is the one that was asked for. Not so 127.0.0.0/8 and
//            ::1, the workspace's own loopback, but for 127.0.0.53:53: resolvers ask again by TCP.
//   sockets  kDoorPort of 127.0.0.1 and of ::1, transparent; UDP port 53 of every address. What else is UDP finds no socket and
//   is
//            refused at once.
//
// Without nf_tables there are no rules, but a listener for each of some ports, at every address: what connects to another port
// meets a server of the namespace's own at every address, where there is one, and else is refused at once. It goes nowhere else.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::capture {

// Below 1024: no session can take it before. What connects to it at 127.0.0.1 or ::1 asks for a proxy.
inline constexpr std::uint16_t kDoorPort = 312;

enum class Step : std::uint32_t { none, user_ns, net_ns, ipv6, routes, rules, listeners, names, proof };
constexpr std::string_view words(Step) { return "none user_ns net_ns ipv6 routes rules listeners names proof"; }

struct AtPort {
  std::uint16_t port = 0;
  Fd socket;  // AF_INET6, listens at ::, takes IPv4 as well
};
struct Sockets {
  Fd tcp4, tcp6;                   // listening, transparent
  std::vector<AtPort> ports = {};  // listening, where there are no rules
  Fd names;   // AF_INET6, bound to ::, takes IPv4 as well: IPV6_PKTINFO says which server was asked (IPv4: ::ffff:a.b.c.d), and
              // put into an answer it is where that comes from
  Fd owners;  // of Owners (owner.h): whose a connection is; none where the kernel does not say
};

// In the namespace that the caller is in. What an earlier call made there is replaced. Without the sockets all that goes out is
// refused at once. `step`: where it failed.
[[nodiscard]] Result<Sockets> open(Step& step);
// Whether this failure of open() says that the kernel has no such rules, not that it has no memory for them just now.
[[nodiscard]] bool without_rules(Step failed, int error);
// In place of open() then: listeners at these ports, of which the first is free.
[[nodiscard]] Result<Sockets> open_ports(Step& step, std::span<const std::uint16_t> ports);
// More of them, later. One that a program of the namespace has taken meanwhile is left out: nothing goes out by it.
[[nodiscard]] Result<std::vector<AtPort>> listen_at(std::span<const std::uint16_t> ports);

}  // namespace caisson::capture
