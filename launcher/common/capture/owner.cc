#include "launcher/common/capture/owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace caisson::capture {
namespace {

constexpr int kMostAnswers = 8;  // of whoever held the socket before, and was ended between question and answer
constexpr std::uint32_t kAllStates = ~0U;
constexpr std::uint16_t kCgroupId = 21;  // INET_DIAG_CGROUP_ID (Linux 5.9); older headers have no name for it

struct Question {
  nlmsghdr head;
  inet_diag_req_v2 asked;
};

// ::ffff:a.b.c.d becomes a.b.c.d.
bool as_v4(__be32* address) {
  if (address[0] != 0 || address[1] != 0 || address[2] != htonl(0xffff)) return false;
  address[0] = std::exchange(address[3], 0);
  address[2] = 0;
  return true;
}

// As a connection of IPv4 has it, also where a socket of IPv6 is at one end of it. False: of neither.
bool put(const sockaddr_storage& from, std::uint16_t& family, __be32* address, __be16& port) {
  family = from.ss_family;
  if (family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &from, sizeof v4);
    std::memcpy(address, &v4.sin_addr, sizeof v4.sin_addr);
    port = v4.sin_port;
  } else if (family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &from, sizeof v6);
    std::memcpy(address, &v6.sin6_addr, sizeof v6.sin6_addr);
    port = v6.sin6_port;
    if (as_v4(address)) family = AF_INET;
  }
  return family == AF_INET || family == AF_INET6;
}

// The other end as its owner has it: its own address is our peer's.
std::optional<Question> question(int accepted) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (::getsockname(accepted, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      ::getpeername(accepted, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    return std::nullopt;
  Question out{};
  std::uint16_t family = 0, same = 0;
  inet_diag_sockid& id = out.asked.id;
  if (!put(peer, family, id.idiag_src, id.idiag_sport) || !put(own, same, id.idiag_dst, id.idiag_dport) || family != same)
    return std::nullopt;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  out.asked.sdiag_family = static_cast<std::uint8_t>(family);
  out.asked.sdiag_protocol = IPPROTO_TCP;
  out.asked.idiag_states = kAllStates;
  out.head = {.nlmsg_len = sizeof out, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST};
  return out;
}

// Where the connection is gone the kernel finds a listener at its port, which may be another session's: the pair of addresses and
// ports must be the one that was asked for.
bool is_of(inet_diag_sockid id, const Question& asked) {
  const inet_diag_sockid& want = asked.asked.id;
  as_v4(id.idiag_src), as_v4(id.idiag_dst);
  return id.idiag_sport == want.idiag_sport && id.idiag_dport == want.idiag_dport &&
         std::memcmp(id.idiag_src, want.idiag_src, sizeof id.idiag_src) == 0 &&
         std::memcmp(id.idiag_dst, want.idiag_dst, sizeof id.idiag_dst) == 0;
}

std::optional<std::uint64_t> cgroup_in(std::string_view attributes) {
  while (attributes.size() >= sizeof(nlattr)) {
    nlattr head;
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > attributes.size()) return std::nullopt;
    if ((head.nla_type & NLA_TYPE_MASK) == kCgroupId && head.nla_len == sizeof head + sizeof(std::uint64_t)) {
      std::uint64_t id = 0;
      std::memcpy(&id, attributes.data() + sizeof head, sizeof id);
      return id;
    }
    attributes.remove_prefix(std::min<std::size_t>(NLA_ALIGN(head.nla_len), attributes.size()));
  }
  return std::nullopt;
}

}  // namespace

Result<Fd> Owners::open() {
  Fd out(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!out) return sys_error("sock_diag");
  return out;
}

// The kernel answers before send(2) returns.
std::optional<std::uint64_t> Owners::cgroup_of(int accepted) {
  auto asked = question(accepted);
  if (!asked || !socket_) return std::nullopt;
  asked->head.nlmsg_seq = ++last_;
  if (::send(socket_.get(), &*asked, sizeof *asked, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof *asked)) return std::nullopt;
  for (int i = 0; i < kMostAnswers; ++i) {
    std::array<char, 2048> bytes;
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) return std::nullopt;
    nlmsghdr head;
    inet_diag_msg found;
    if (from.nl_pid != 0 || static_cast<std::size_t>(got) < sizeof head) continue;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.nlmsg_seq != last_ || head.nlmsg_len > static_cast<std::size_t>(got)) continue;
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_len < sizeof head + sizeof found) return std::nullopt;
    std::memcpy(&found, bytes.data() + sizeof head, sizeof found);
    if (!is_of(found.id, *asked)) return std::nullopt;
    return cgroup_in({bytes.data() + sizeof head + sizeof found, head.nlmsg_len - sizeof head - sizeof found});
  }
  return std::nullopt;
}

}  // namespace caisson::capture
