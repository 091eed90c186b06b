#include "launcher/common/capture/capture.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "launcher/common/capture/netlink.h"
#include "launcher/common/capture/owner.h"
#include "launcher/common/capture/rules.h"

namespace caisson::capture {
namespace {

constexpr std::uint16_t kNamesPort = 53;
constexpr int kBacklog = 1024, kProofMs = 1000, kTries = 50;

sockaddr_in6 address_of(int family, const char* text, std::uint16_t port) {
  sockaddr_in6 out{};  // large enough for either
  if (family == AF_INET6) {
    out = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    ::inet_pton(AF_INET6, text, &out.sin6_addr);
  } else {
    sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port)};
    ::inet_pton(AF_INET, text, &v4.sin_addr);
    std::memcpy(&out, &v4, sizeof v4);
  }
  return out;
}
socklen_t size_of(int family) { return family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
const sockaddr* plain(const sockaddr_in6& address) { return reinterpret_cast<const sockaddr*>(&address); }

Status routes() {
  const unsigned loopback = ::if_nametoindex("lo");
  if (loopback == 0) return sys_error("lo");
  Requests to;
  for (const int family : {AF_INET, AF_INET6}) {
    to.begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE,
             rtmsg{.rtm_family = static_cast<unsigned char>(family),
                   .rtm_table = RT_TABLE_LOCAL,
                   .rtm_protocol = RTPROT_STATIC,
                   .rtm_scope = RT_SCOPE_HOST,
                   .rtm_type = RTN_LOCAL});
    to.put_native(RTA_OIF, loopback);
  }
  return to.send(NETLINK_ROUTE);
}

bool set(const Fd& socket, int level, int option) {
  const int on = 1;
  return ::setsockopt(socket.get(), level, option, &on, sizeof on) == 0;
}

Fd stream(int family, bool both) {
  Fd out(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int only6 = both ? 0 : 1;
  if (!out || !set(out, SOL_SOCKET, SO_REUSEADDR)) return {};
  if (family == AF_INET6 && ::setsockopt(out.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only6, sizeof only6) != 0) return {};
  return out;
}

// Whoever had the port before may be about to end: the door of a gate that was killed. `tries`: how often it may still be tried
// again, of all ports together.
Status bound(const Fd& socket, int family, const char* address, std::uint16_t port, int& tries) {
  const sockaddr_in6 to = address_of(family, address, port);
  for (; ::bind(socket.get(), plain(to), size_of(family)) != 0; --tries) {
    if (errno != EADDRINUSE || tries == 0) return sys_error("bind port " + std::to_string(port));
    const timespec while_it_ends{0, 20'000'000};
    ::nanosleep(&while_it_ends, nullptr);
  }
  return {};
}

Status listening(const Fd& socket, int family, const char* address, std::uint16_t port, int& tries) {
  TRY(bound(socket, family, address, port, tries));
  return ::listen(socket.get(), kBacklog) == 0 ? Status() : sys_error("listen at port " + std::to_string(port));
}

Result<Fd> listener(int family) {
  Fd out = stream(family, false);
  if (!out) return sys_error("socket");
  if (!(family == AF_INET6 ? set(out, IPPROTO_IPV6, IPV6_TRANSPARENT) : set(out, IPPROTO_IP, IP_TRANSPARENT)))
    return sys_error("setsockopt");
  int tries = kTries;
  TRY(listening(out, family, family == AF_INET6 ? "::1" : "127.0.0.1", kDoorPort, tries));
  return out;
}

// Transparent, because an answer leaves from the address that was asked, which is none of this namespace's.
Result<Fd> names_socket() {
  Fd out(::socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int off = 0;
  if (!out) return sys_error("socket");
  if (::setsockopt(out.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 || !set(out, IPPROTO_IPV6, IPV6_RECVPKTINFO) ||
      !set(out, IPPROTO_IPV6, IPV6_TRANSPARENT) || !set(out, IPPROTO_IP, IP_TRANSPARENT) ||
      !set(out, IPPROTO_IPV6, IPV6_FREEBIND))
    return sys_error("setsockopt");
  int tries = kTries;
  TRY(bound(out, AF_INET6, "::", kNamesPort, tries));
  return out;
}

// That a connection to an address of documentation (RFC 5737, RFC 3849) really comes to the listener, as that address. `seen`: as
// the listener has it, which takes both families or one.
Status proof(const Fd& at, int family, std::uint16_t port, const char* address, const char* seen, Fd& owners) {
  const sockaddr_in6 there = address_of(family, address, port);
  const Fd client(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!client) return sys_error("socket");
  if (::connect(client.get(), plain(there), size_of(family)) != 0 && errno != EINPROGRESS) return sys_error("connect");
  pollfd come{at.get(), POLLIN, 0};
  if (::poll(&come, 1, kProofMs) != 1) return sys_error("nothing comes to the listener", ETIMEDOUT);
  const Fd server(::accept4(at.get(), nullptr, nullptr, SOCK_CLOEXEC));
  sockaddr_in6 own{};
  socklen_t size = sizeof own;
  if (!server || ::getsockname(server.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return sys_error("accept");
  const int as = std::string_view(seen).contains(':') ? AF_INET6 : AF_INET;
  const sockaddr_in6 want = address_of(as, seen, port);
  if (size != size_of(as) || std::memcmp(&own, &want, size) != 0)
    return sys_error("the listener does not see the address that was asked for", EADDRNOTAVAIL);
  // Not before Linux 5.9, nor without CONFIG_SOCK_CGROUP_DATA or inet_diag: then sessions are not told apart.
  Owners asked(std::move(owners));
  if (asked.cgroup_of(server.get())) owners = std::move(asked).socket();
  return {};
}

constexpr char kFour[] = "192.0.2.1", kFourInSix[] = "::ffff:192.0.2.1", kSix[] = "2001:db8::1";
constexpr std::uint16_t kProofPort = 9;

// What there is with rules and without.
Status begin(Sockets& out, Step& step) {
  step = Step::ipv6;  // off in the kernel (ipv6.disable=1): then half of this cannot be made, and nothing is
  if (const Fd any(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)); !any) return sys_error("IPv6");
  step = Step::listeners;
  TRY_ASSIGN(out.tcp4, listener(AF_INET));
  TRY_ASSIGN(out.tcp6, listener(AF_INET6));
  step = Step::names;
  TRY_ASSIGN(out.names, names_socket());
  return {};
}

}  // namespace

Result<Sockets> open(Step& step) {
  Sockets out;
  TRY(begin(out, step));
  // Rules before routes: no connection finds its way past the listener meanwhile.
  step = Step::rules;
  TRY(load_rules(kDoorPort));
  step = Step::routes;
  TRY(routes());
  step = Step::proof;
  if (auto owners = Owners::open()) out.owners = std::move(*owners);
  TRY(proof(out.tcp4, AF_INET, kProofPort, kFour, kFour, out.owners));
  TRY(proof(out.tcp6, AF_INET6, kProofPort, kSix, kSix, out.owners));
  step = Step::none;
  return out;
}

bool without_rules(Step failed, int error) {
  return failed == Step::rules && error != ENOMEM && error != ENOBUFS && error != EAGAIN && error != EINTR;
}

Result<Sockets> open_ports(Step& step, std::span<const std::uint16_t> ports) {
  Sockets out;
  TRY(begin(out, step));
  step = Step::listeners;
  TRY_ASSIGN(out.ports, listen_at(ports));
  if (out.ports.empty() || out.ports.front().port != ports.front()) return sys_error("no port is free", EADDRINUSE);
  step = Step::routes;
  TRY(routes());
  step = Step::proof;
  if (auto owners = Owners::open()) out.owners = std::move(*owners);
  const AtPort& first = out.ports.front();
  TRY(proof(first.socket, AF_INET, first.port, kFour, kFourInSix, out.owners));
  TRY(proof(first.socket, AF_INET6, first.port, kSix, kSix, out.owners));
  step = Step::none;
  return out;
}

Result<std::vector<AtPort>> listen_at(std::span<const std::uint16_t> ports) {
  std::vector<AtPort> out;
  int tries = kTries;
  for (const std::uint16_t port : ports) {
    Fd socket = stream(AF_INET6, true);
    if (!socket) return sys_error("socket");
    const Status done = listening(socket, AF_INET6, "::", port, tries);
    if (done) out.push_back({port, std::move(socket)});
    else if (done.error().sys != EADDRINUSE) return std::unexpected(done.error());
  }
  return out;
}

}  // namespace caisson::capture
