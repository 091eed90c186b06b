// The control socket of the `caisson` command: SOCK_SEQPACKET in the run directory, for the launcher's own uid only, which
// must be root. Checked twice: file mode, and the kernel's word on the peer (SO_PEERCRED).
#pragma once

#include <string>

#include "launcher/base/fd.h"
#include "launcher/base/loop.h"
#include "launcher/session/manager.h"

namespace caisson {

[[nodiscard]] Result<Fd> serve_control(const std::string& path, session::Manager& manager, Loop& loop);

}  // namespace caisson
