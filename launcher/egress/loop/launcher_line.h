// The line of door, dialer and opener to the launcher (common/egress/protocol.h): its orders, checked, and what is told to it.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/common/egress/protocol.h"
#include "launcher/egress/loop/link.h"

namespace caisson::egress {

class LauncherLine {
 public:
  // text: of those from Order::member on, but for opener and ports. False: an order with the wrong descriptors; as any other
  // violation it ends the line, and `ended` is called.
  using Ordered = std::function<bool(const OrderHead& order, std::string_view text, std::vector<Fd> fds)>;
  LauncherLine(Poll& poll, Fd fd, Ordered ordered, std::function<void()> ended);
  // Whether it goes out: not, where the launcher does not keep up.
  bool tell(Said said, std::uint64_t workspace, std::string_view text = {});
  [[nodiscard]] bool room() const { return link_.room(); }

 private:
  Link link_;
};

// The bytes of a memory file, by pread(2): door and dialer have the same open file, and with it one offset. nullopt: unreadable,
// or more than `most`.
[[nodiscard]] std::optional<std::string> bytes_of(int file, std::size_t most);

}  // namespace caisson::egress
