#include "launcher/gate/own_port.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "launcher/common/base/fd.h"

namespace caisson::gate {
namespace {

constexpr std::uint8_t kListens = 10;  // TCP_LISTEN

// No port is taken by that: the kernel gives a free one of UDP, if the address is here.
bool is_here(const egress::Address& address) {
  const Fd fd(::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = 0, .sin6_flowinfo = 0, .sin6_addr = {}, .sin6_scope_id = 0};
  std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof v4.sin_addr);
  std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
  const void* where = address.v6 ? static_cast<const void*>(&v6) : &v4;
  const socklen_t size = address.v6 ? sizeof v6 : sizeof v4;
  return ::bind(fd.get(), static_cast<const sockaddr*>(where), size) == 0;
}

// Asks for the socket of a connection from nowhere to there: the kernel answers with the listener that would get it.
bool listens(std::uint8_t family, const egress::Address& address, std::uint16_t port) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 asked;
  } question{};
  question.head = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST};
  question.asked.sdiag_family = family;
  question.asked.sdiag_protocol = IPPROTO_TCP;
  question.asked.idiag_states = ~0U;
  question.asked.id.idiag_sport = htons(port);
  std::memcpy(question.asked.id.idiag_src, address.bytes.data(), family == AF_INET6 ? 16 : 4);
  question.asked.id.idiag_cookie[0] = question.asked.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd || ::send(fd.get(), &question, sizeof question, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof question)) return false;
  std::array<char, 2048> bytes;  // the kernel answers before send(2) returns, and the socket is nobody else's
  const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  nlmsghdr head;
  inet_diag_msg found;
  if (got < static_cast<ssize_t>(sizeof head + sizeof found)) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  std::memcpy(&found, bytes.data() + sizeof head, sizeof found);
  return head.nlmsg_type == SOCK_DIAG_BY_FAMILY && found.idiag_state == kListens;
}

}  // namespace

bool is_own_port(const egress::Address& address, std::uint16_t port) {
  if (port == 0 || !is_here(address)) return false;
  return listens(address.v6 ? AF_INET6 : AF_INET, address, port);
}

}  // namespace caisson::gate
