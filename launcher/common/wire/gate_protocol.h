// Messages between the launcher and caisson-gate over one SOCK_SEQPACKET pair: fixed native structs, then text. Both ends are
// built together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::gate {

inline constexpr std::size_t kMaxName = 64, kMaxMessage = 20 * 1024;

// launcher -> gate, with the workspace's name; with descriptors, in this order
enum class Op : std::uint32_t {
  make = 1,   // user namespace, list (memory file), socket for the answer: a network namespace with a way out is made
  open = 2,   // user namespace, list, network namespace: that one, which an earlier gate made, gets it again. Nothing is answered
  list = 3,   // newer list
  close = 4,  // nothing: its connections end, and no more are accepted
  line = 5,   // a SOCK_SEQPACKET socket: what its other end asks of the workspace's way out is answered (tables/way_ops.h)
};
struct Order {
  Op op;
  std::uint32_t generation;  // of the list
  std::uint64_t workspace;   // a number that is never used again
};

// `make` is answered with the network namespace, and not before door and dialer serve; or with text that says what went wrong.

// gate -> launcher: a record for the launcher's log, a JSON object's text, in the order of audit::Event.
enum class Told : std::uint32_t { connection, refused, dropped, start, exit };

}  // namespace caisson::gate
