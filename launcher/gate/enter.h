// What is done inside a workspace's namespaces. A user namespace cannot be left again, so each time a child does it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/common/base/loop.h"
#include "launcher/common/capture/capture.h"

namespace caisson::gate {

struct Entered {
  Fd net_ns;
  capture::Sockets sockets;
  std::string without;  // why the kernel has no rules, and listeners at ports stand in; "" where it has
  int error = 0;
  std::string what;  // the step that failed; "" where all went well
};
using Done = std::function<void(Entered)>;

// Takes all connections of the network namespace, or of a new one where it is none; without nf_tables those to these ports.
// `done` is called from the loop, at the latest after some seconds. Neither descriptor is needed after this returns.
void enter(Loop& loop, const Fd& user_ns, const Fd& net_ns, const std::vector<std::uint16_t>& ports, Done done);
// Listeners at more ports, where there are no rules: `sockets.ports` alone.
void enter_again(Loop& loop, const Fd& user_ns, const Fd& net_ns, const std::vector<std::uint16_t>& ports, Done done);

}  // namespace caisson::gate
