// Messages about connections that are made on a process's behalf, where sessions have no network namespace (T0, T1): over
// SOCK_SEQPACKET pairs, fixed native structs. Both ends are built together. A connector has its session's uid: the door takes
// what it says for that session's word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::egress {

// builder -> gate, over the workspace's socket, with one end of a pair whose other end is a connector's: text "session domain".
// The gate puts a Hello into that end and hands it on to the door.
inline constexpr std::size_t kMaxWhose = 160;

// gate -> connector, the first message
struct Hello {
  std::uint16_t port;  // of 127.0.0.1, where the door listens for this workspace
};

// connector -> door
enum class Wish : std::uint32_t {
  connect = 1,   // what is bound to 127.0.0.1:from is about to connect to the door, and means this place
  withdraw = 2,  // it will not: its process is gone, or nobody waits any more. Nothing is answered
};
struct Ask {
  Wish wish;
  std::uint32_t id;  // of the connector's
  std::uint16_t from, port;
  std::uint8_t v6, waits;  // waits: the process does, so the door connects outside before it answers
  std::uint8_t reserved[2];
  std::uint8_t address[16];  // IPv4: the first four bytes
};
// door -> connector
struct Reply {
  std::uint32_t id;
  std::int32_t error;  // errno for the process, or 0: it may connect
};

// How long a process that waits is kept waiting: longer than the dialer takes.
inline constexpr std::int64_t kPatienceUs = 13'000'000;

}  // namespace caisson::egress
