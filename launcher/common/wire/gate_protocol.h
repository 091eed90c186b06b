// Messages between the launcher and caisson-gate over one SOCK_SEQPACKET pair: fixed native structs, then text. Both ends are
// built together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace caisson::gate {

// Variables of the container that are passed on to it (gate/variables.cc).
inline constexpr std::string_view kVariables = "PROXY_SERVER PROXY_AUTH_CMD PROXY_INCLUDE PROXY_EXCLUDE PROXY_MAP";

inline constexpr std::size_t kMaxName = 64, kMaxMessage = 20 * 1024;

// launcher -> gate, with the workspace's name; with descriptors, in this order
enum class Op : std::uint32_t {
  make = 1,  // list (memory file), socket for the answer, user namespace: a network namespace with a way out is made. Without the
             // last: sessions have none of their own, and caisson-connector connects for them; that socket is the builder's then
  open = 2,  // list, network namespace or that socket, user namespace: what an earlier gate made. Nothing is answered
  list = 3,  // newer list
  close = 4,  // nothing: its connections end, and no more are accepted
  line = 5,   // a SOCK_SEQPACKET socket: what its other end asks of the workspace's way out is answered (tables/way_ops.h)
  operator_line = 6,  // as line, for whoever reached the control socket
};
struct Order {
  Op op;
  std::uint32_t generation;  // of the list
  std::uint64_t workspace;   // a number that is never used again
};

// The answer to `make` comes when door and dialer serve. It is the network namespace, or the same socket where sessions have no
// namespace; or text that says what went wrong.

// gate -> launcher: a record for the launcher's log, a JSON object's text, in the order of audit::Event.
enum class Told : std::uint32_t { connection, refused, dropped, start, exit };

}  // namespace caisson::gate
