// The loopback interface of a new network namespace, brought up by libnl (rtnetlink(7)).
#pragma once

namespace caisson::confine {

// In the calling process's network namespace; needs CAP_NET_ADMIN there. 0, or an errno. Post-condition: lo has IFF_UP.
[[nodiscard]] int loopback_up();

}  // namespace caisson::confine
