// The ids by which the launcher names sessions and their logs, and the domain that operators alone have sessions of. Ids: "s-"
// and a number of 16 hexadecimal digits. Its upper half is the second in which the session began, so that ids sort by time.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace caisson {

inline constexpr std::size_t kSessionIdSize = 18;
// The domain in whose sessions commands that print credentials run, for caisson-gate (gate/commands.h). An agent that was taken
// over would run commands of its own there, which could read what those may.
inline constexpr std::string_view kCredentialsDomain = "credentials";

[[nodiscard]] inline std::string session_id(std::uint64_t number) {
  char id[kSessionIdSize + 1];
  std::snprintf(id, sizeof id, "s-%016lx", number);
  return id;
}

// 0: `id` is not a session's id.
[[nodiscard]] inline std::uint64_t session_number(std::string_view id) {
  std::uint64_t number = 0;
  if (id.size() == kSessionIdSize) std::from_chars(id.data() + 2, id.data() + kSessionIdSize, number, 16);
  return id == session_id(number) ? number : 0;
}

}  // namespace caisson
