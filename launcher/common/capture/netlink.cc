#include "launcher/common/capture/netlink.h"

#include <sys/socket.h>

namespace caisson::capture {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "put_big turns the bytes around");

void Requests::attribute(std::uint16_t type, std::string_view value) {
  append(nlattr{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + value.size()), .nla_type = type});
  bytes_.append(value);
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

void Requests::end() {
  const auto size = static_cast<std::uint32_t>(bytes_.size() - start_);
  std::memcpy(&bytes_[start_], &size, sizeof size);
}

Status Requests::send(int protocol) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket) return sys_error("netlink socket");
  // An acknowledgement then is a few bytes, not the whole message again.
  const int on = 1;
  (void)::setsockopt(socket.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  if (::send(socket.get(), bytes_.data(), bytes_.size(), 0) != static_cast<ssize_t>(bytes_.size())) return sys_error("netlink");
  // The kernel works them off before send(2) returns: an answer that is not there now never comes.
  while (answers_ > 0) {
    alignas(nlmsghdr) char buffer[8192];
    const ssize_t size = ::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (size <= 0) return sys_error("netlink answers nothing", size < 0 ? errno : EPROTO);
    auto left = static_cast<unsigned>(size);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(head, left) && answers_ > 0; head = NLMSG_NEXT(head, left)) {
      if (head->nlmsg_type != NLMSG_ERROR || head->nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr))) continue;
      nlmsgerr answer;
      std::memcpy(&answer, NLMSG_DATA(head), sizeof answer);
      if (answer.error != 0) return sys_error("netlink refuses message " + std::to_string(head->nlmsg_seq), -answer.error);
      --answers_;
    }
  }
  return {};
}

}  // namespace caisson::capture
