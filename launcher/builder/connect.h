// A connection into a workspace's network namespace, for the agent, which may not connect by itself.
#pragma once

#include "launcher/common/build/child.h"

namespace caisson::confine {

inline constexpr int kConnectMs = 5'000;

// Enters the namespace and connects to `port` of 127.0.0.1, or of ::1 where nothing listens there. Hands over the connected
// socket (SOCK_NONBLOCK), or a last record whose value is the errno of the attempt: ETIMEDOUT after kConnectMs.
[[noreturn]] void connect_child(const ChildArgs& args, unsigned port);

}  // namespace caisson::confine
