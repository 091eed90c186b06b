// Messages between the launcher and caisson-gate over one SOCK_SEQPACKET pair: fixed native structs, then text. Both ends are
// built together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::gate {

inline constexpr std::size_t kMaxName = 64, kMaxMessage = 20 * 1024;

// launcher -> gate, with the workspace's name
enum class Op : std::uint32_t {
  open =
      1,  // with its user and its network namespace, its list (memory file) and, where it is waited for, a socket for the answer
  list = 2,   // with a newer list
  close = 3,  // it ends; with its two namespaces: it goes on, and what was made in them is removed
};
struct Order {
  Op op;
  std::uint32_t generation;  // of the list
  std::uint64_t workspace;   // a number that is never used again
};

// The answer to `open`, with text: what went wrong. It is never sent before door and dialer serve.
struct Answer {
  std::int32_t error;  // errno of what went wrong; 0: nothing
};

// gate -> launcher: a record for the launcher's log, a JSON object's text, in the order of audit::Event.
enum class Told : std::uint32_t { connection, refused, dropped, start, exit };

}  // namespace caisson::gate
