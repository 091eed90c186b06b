// The ids by which the launcher names sessions and their logs: "s-" and a number of 16 hexadecimal digits. Its upper half is the
// second in which the session began, so that ids sort by time.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace caisson {

inline constexpr std::size_t kSessionIdSize = 18;

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
