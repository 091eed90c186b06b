// Through an upstream proxy: asks it for a connection, by CONNECT or SOCKS 5, and says who we are. Of what it answers not a byte
// more is taken than its answer has: the rest is the door's.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/egress/list/upstream.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

struct Through {
  Fd fd;           // where it let us through
  int status = 0;  // else what it answered, or what that would be in HTTP; 407: it does not take the credential
  int error = 0;   // or errno: it went away (ECONNRESET), said what is no answer (EPROTO), or nothing in time (ETIMEDOUT)
};
// proxy: connected to it. host: in its one form.
[[nodiscard]] Task<Through> go_through(Poll& poll, Fd proxy, Upstream upstream, std::string host, std::uint16_t port,
                                       std::int64_t deadline_us);

}  // namespace caisson::egress
