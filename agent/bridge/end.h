// Why something that was started has ended: one closed list for every API, and the one table from the launcher's words, and those
// that we give it, to that list. What the kernel or the launcher counted comes along, where it was a limit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/json.h"

namespace caisson::bridge {

inline constexpr std::array<std::string_view, 12> kEndReasons = {"exit", "signal", "oom",  "pids",   "disk",  "cpu",
                                                                 "time", "output", "idle", "policy", "agent", "shutdown"};

struct End {
  std::string reason;                           // of kEndReasons
  std::optional<std::string> limit;             // its name, which has its unit
  std::optional<std::int64_t> allowed, figure;  // of the limit; what was reached. Of an exit, figure is the code
  std::optional<std::string> signal, cause;     // "SIGSEGV"; the word behind `reason` where it says more
};

// word: the launcher's, or a reason that the agent gave for an end of its own; one that no row names is the agent's.
[[nodiscard]] End end_of(std::string_view word);
[[nodiscard]] End exit_end(int exit_code);
[[nodiscard]] End time_end(std::string limit, std::int64_t allowed, std::int64_t figure);
// Of the event that tells of it, or of the last record of its log.
[[nodiscard]] End session_end(const json::Value& event);
[[nodiscard]] End exec_end(const json::Value& event, std::int64_t hard_timeout_ms);
// As it is kept for a later agent, and back; what is not of this form is the agent's restart.
[[nodiscard]] json::Value kept_end(const End& end);
[[nodiscard]] End end_from(const json::Value& kept);

}  // namespace caisson::bridge
