// Messages between the agent and caisson-courier, over one SOCK_SEQPACKET pair whose ends the launcher keeps as well. All that
// the agent can say is that it wants the key set, and that it has spans; where they come from and go to, the courier knows alone.
// Each end checks what it takes from the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::courier {

enum class Type : std::uint32_t {
  // from the agent
  fetch_keys = 1,  // no text
  post_spans,      // text: the body; number: how many spans are in it
  // from the courier
  keys,          // text: a part of the set; number: of the bytes that follow in further parts
  keys_failed,   // text: why
  spans_posted,  // number: of the order
  spans_lost,    // number: of the order; text: why
};

struct Head {
  Type type;
  std::uint32_t number;
};

inline constexpr std::size_t kMaxText = 128 * 1024, kMaxMessage = sizeof(Head) + kMaxText;
inline constexpr std::size_t kMaxAnswer = 256 * 1024;  // of a server; what is longer is none
inline constexpr std::size_t kMaxWhy = 512;

}  // namespace caisson::courier
