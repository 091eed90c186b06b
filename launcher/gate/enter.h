// What is done inside a workspace's namespaces. A user namespace cannot be left again, so each time a child does it.
#pragma once

#include <functional>
#include <string>

#include "launcher/common/base/loop.h"
#include "launcher/common/capture/capture.h"

namespace caisson::gate {

struct Entered {
  capture::Sockets sockets;
  int error = 0;
  std::string what;  // step and errno; "" where all went well
};
using Done = std::function<void(Entered)>;

// Takes all connections there (capture::open), or lets them go (capture::shut); `done` is called from the loop, at the latest
// after some seconds. Neither descriptor is needed after this returns.
void enter(Loop& loop, const Fd& user_ns, const Fd& net_ns, bool shut, Done done);

}  // namespace caisson::gate
