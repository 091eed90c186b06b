// The door's questions to the launcher for connections to servers inside the workspace, which it cannot make itself, and the
// dialer cannot either: it is in another network.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "launcher/common/base/task.h"
#include "launcher/egress/door/dial_line.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

class InsideLine {
 public:
  InsideLine(Poll& poll, LauncherLine& launcher) : poll_(poll), launcher_(launcher) {}
  // To that port of its loopback. The launcher makes it only where a mapping leads there.
  [[nodiscard]] Task<Dialed> connect(std::uint64_t workspace, std::uint16_t port);
  // Order::inside. False: it is none.
  [[nodiscard]] bool heard(std::string_view text, std::vector<Fd> fds);

 private:
  Poll& poll_;
  LauncherLine& launcher_;
  PendingDial::All pending_;
  std::uint32_t last_id_ = 0;
};

}  // namespace caisson::egress
