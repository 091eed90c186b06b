#include "launcher/compiler/connected.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <initializer_list>

namespace caisson::confine {
namespace {

using policy::ArgRule;
using policy::Pretence;

constexpr std::uint64_t kInt = 0xffffffff;  // what the kernel reads of an int
constexpr std::uint64_t kKind = kInt & ~static_cast<std::uint64_t>(SOCK_NONBLOCK | SOCK_CLOEXEC);

ArgRule equal(unsigned index, int value, std::uint64_t mask = kInt) {
  return {.index = index, .op = "masked_eq", .value = static_cast<std::uint32_t>(value), .mask = mask};
}

// The first of these that holds decides; what none of them holds for is as the sets have it.
void add_sockets(std::vector<Pretence>& out) {
  Pretence tcp{.name = "socket", .error = kTold}, datagram{.name = "socket", .error = EACCES},
      rest{.name = "socket", .error = EPERM};
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int protocol : {0, static_cast<int>(IPPROTO_TCP)})
      tcp.when.push_back({equal(0, family), equal(1, SOCK_STREAM, kKind), equal(2, protocol)});
    // What sendmsg(2) names as its destination no filter can see.
    datagram.when.push_back({equal(0, family), equal(1, SOCK_DGRAM, kKind)});
    rest.when.push_back({equal(0, family)});  // raw, SCTP, and MPTCP, which Landlock does not govern
  }
  out.insert(out.end(), {tcp, datagram, rest});
}

// MSG_FASTOPEN connects without connect(2), and past Landlock.
void add_fast_open(std::vector<Pretence>& out) {
  constexpr std::pair<const char*, unsigned> kFlags[] = {{"sendto", 3}, {"sendmsg", 2}, {"sendmmsg", 3}};
  for (const auto& [name, flags] : kFlags)
    out.push_back({.name = name, .error = EPERM, .when = {{equal(flags, MSG_FASTOPEN, MSG_FASTOPEN)}}});
}

// A route that the packets carry, or a device that they leave by, would lead them elsewhere than to the loopback. IPV6_V6ONLY:
// after our bind(2) the kernel refuses it, and it has no meaning for what is bound to one address; Java would fail.
void add_options(std::vector<Pretence>& out) {
  constexpr int kOldOptions[] = {IPV6_2292HOPOPTS, IPV6_2292DSTOPTS, IPV6_2292RTHDR, IPV6_2292PKTOPTIONS};
  Pretence routes{.name = "setsockopt", .error = EPERM, .when = {{equal(1, IPPROTO_IP), equal(2, IP_OPTIONS)}}};
  for (const int option : {IPV6_HOPOPTS, IPV6_RTHDRDSTOPTS, IPV6_RTHDR, IPV6_DSTOPTS})
    routes.when.push_back({equal(1, IPPROTO_IPV6), equal(2, option)});
  for (const int option : kOldOptions) routes.when.push_back({equal(1, IPPROTO_IPV6), equal(2, option)});
  for (const int option : {SO_BINDTODEVICE, SO_BINDTOIFINDEX}) routes.when.push_back({equal(1, SOL_SOCKET), equal(2, option)});
  out.push_back(std::move(routes));
  out.push_back({.name = "setsockopt", .error = 0, .when = {{equal(1, IPPROTO_IPV6), equal(2, IPV6_V6ONLY)}}});
}

}  // namespace

policy::SyscallSet connected_calls() {
  policy::SyscallSet set{.name = "connected"};
  add_sockets(set.pretend);
  add_fast_open(set.pretend);
  add_options(set.pretend);
  set.pretend.push_back({.name = "connect", .error = kTold, .when = {}});
  return set;
}

}  // namespace caisson::confine
