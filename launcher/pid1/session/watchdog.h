// What stands in for the cgroup where there is none, and for a cover that the kernel does not keep: looks at the processes of
// all sessions, and ends a session that is over a limit of its own, or the largest of a workspace that is.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/ends.h"
#include "launcher/pid1/session/process_tree.h"
#include "launcher/pid1/session/sessions.h"

namespace caisson::session {

class Watchdog {
 public:
  Watchdog(const Host& host, const Sessions& sessions) : host_(host), sessions_(sessions) {}

  void start();
  // One pass over /proc serves everybody for ten times as long as it took: however often a client asks, a tenth of the
  // launcher's time goes to it.
  [[nodiscard]] const ProcessTree& processes();

 private:
  void watch();
  void watch_covers();
  void watch_workspaces(const ProcessTree& tree, std::uint64_t files, std::vector<std::string>& groups);
  void weigh(std::vector<std::string> groups);

  const Host& host_;
  const Sessions& sessions_;
  ProcessTree tree_;
  std::int64_t tree_until_us_ = 0;
  bool weighing_ = false;
};

}  // namespace caisson::session
