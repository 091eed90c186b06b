// Requests to the kernel by netlink (netlink(7)): messages of one buffer, which are sent together and each acknowledged. What
// routes and packet filters need, and no more: nothing here reads the kernel's tables.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::capture {

class Requests {
 public:
  // Begins a message: `fixed` is the struct that follows its header. `acknowledged` is false for the two around a batch of
  // nfnetlink, which the kernel does not answer.
  template <class Fixed>
  void begin(std::uint16_t type, std::uint16_t flags, const Fixed& fixed, bool acknowledged = true) {
    start_ = bytes_.size();
    const auto ack = static_cast<std::uint16_t>(acknowledged ? NLM_F_ACK : 0);
    if (acknowledged) ++answers_;
    append(nlmsghdr{.nlmsg_type = type,
                    .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags | ack),
                    .nlmsg_seq = static_cast<std::uint32_t>(++count_)});
    append(fixed);
    end();
  }
  // Attributes of the message that was begun last.
  void put(std::uint16_t type, std::string_view value) {
    attribute(type, value);
    end();
  }
  void put_text(std::uint16_t type, std::string_view text) { put(type, std::string(text) + '\0'); }
  void put_native(std::uint16_t type, std::uint32_t value) { put(type, raw(value)); }
  void put_big(std::uint16_t type, std::uint32_t value) { put(type, raw(__builtin_bswap32(value))); }
  // An attribute that holds those that `fill` puts.
  template <class Fill>
  void nest(std::uint16_t type, const Fill& fill) {
    const std::size_t at = bytes_.size();
    attribute(static_cast<std::uint16_t>(type | NLA_F_NESTED), "");
    fill();
    const auto size = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(&bytes_[at], &size, sizeof size);
    end();
  }
  // Sends all of them over a new socket of that protocol (NETLINK_ROUTE, NETLINK_NETFILTER). The error of the first that failed;
  // of a batch of nfnetlink then none takes effect.
  [[nodiscard]] Status send(int protocol);

 private:
  template <class T>
  static std::string raw(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  template <class T>
  void append(const T& value) {
    bytes_.append(raw(value));
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  void attribute(std::uint16_t type, std::string_view value);
  void end();  // the message ends here, as far as is known

  std::string bytes_;
  std::size_t start_ = 0;  // of the message that was begun last
  unsigned count_ = 0, answers_ = 0;
};

}  // namespace caisson::capture
