// The control socket of the `caisson` command: SOCK_SEQPACKET in the run directory, for the launcher's own uid only, which
// must be root. Checked twice: file mode, and the kernel's word on the peer (SO_PEERCRED).
#pragma once

#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/loop.h"
#include "launcher/pid1/session/operations.h"

namespace caisson {

[[nodiscard]] Result<Fd> serve_control(const std::string& path, session::Operations& operations, Loop& loop);

}  // namespace caisson
