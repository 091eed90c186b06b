// Connections to servers inside a workspace, for its mappings. A network namespace is entered by a child each time: a user
// namespace cannot be left again.
#pragma once

#include <cstdint>
#include <functional>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/loop.h"

namespace caisson::gate {

// To that port of 127.0.0.1 there; `done` is called from the loop, after some seconds at the latest, with the connected socket or
// an errno. Neither descriptor is needed after this returns.
void connect_inside(Loop& loop, const Fd& user_ns, const Fd& net_ns, std::uint16_t port, std::function<void(Fd, int error)> done);

}  // namespace caisson::gate
