// Sockets in a workspace's network namespace, for the agent, which may not enter it.
#pragma once

#include "launcher/common/build/child.h"

namespace caisson::confine {

inline constexpr int kConnectSeconds = 5;

// Enters the namespace and connects to `port` of 127.0.0.1, or of ::1 where nothing listens there. With kListens, it listens at
// that port of 127.0.0.1, or at one of the kernel's choice where it is taken. Hands over the socket (O_NONBLOCK), or a last
// record whose value is the errno of the attempt: ETIMEDOUT after kConnectSeconds.
[[noreturn]] void connect_child(const ChildArgs& args, unsigned port);

}  // namespace caisson::confine
