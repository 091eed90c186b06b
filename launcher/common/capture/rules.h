// The packet filter of capture.h: table inet caisson of nf_tables. `nft list ruleset` would show:
//
//   table inet caisson {
//     chain prerouting {
//       type filter hook prerouting priority mangle; policy accept;
//       meta nfproto ipv4 meta l4proto tcp tcp flags & (syn | ack) == syn @nh,128,8 != 127 tproxy ip to 127.0.0.1:PORT
//       meta nfproto ipv4 meta l4proto tcp tcp flags & (syn | ack) == syn ip daddr 127.0.0.53 tcp dport 53 tproxy ip to
//       127.0.0.1:PORT meta nfproto ipv6 meta l4proto tcp tcp flags & (syn | ack) == syn ip6 daddr != ::1 tproxy ip6 to
//       [::1]:PORT
//     }
//   }
#pragma once

#include <cstdint>

#include "launcher/common/base/result.h"

namespace caisson::capture {

// In one transaction: all of it, in place of what was there, or nothing.
[[nodiscard]] Status load_rules(std::uint16_t port);

}  // namespace caisson::capture
