// The sessions by their cgroups: PID 1 gives each a leaf below its own, `caisson-sessions/[w-…/]SESSION[.DOMAIN]`, with the
// domain where its sessions go out. No session can write there, and the kernel gives no id twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"

namespace caisson::gate {

class Members {
 public:
  // Finds the tree beside the cgroup that we are in. Not there: PID 1 gives sessions no cgroups here (no cgroup v2).
  Members();
  [[nodiscard]] bool known() const { return static_cast<bool>(tree_); }
  // As Order::member has it (common/egress/protocol.h): "session domain", "session ", or "".
  [[nodiscard]] std::string find(std::uint64_t cgroup) const;
  // Names of the session's programs, as they call themselves (comm of proc(5)), a few of them: an array of texts.
  [[nodiscard]] json::Value programs(std::string_view session) const;

 private:
  Fd tree_;
};

}  // namespace caisson::gate
