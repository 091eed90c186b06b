// Why a program or session has ended. Every API uses one closed list of reasons; one table maps the launcher's words, and the
// words that the agent gives the launcher, to that list. Where a limit was the reason, its figures come along.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::bridge {

inline constexpr std::array<std::string_view, 12> kEndReasons = {"exit", "signal", "oom",  "pids",   "disk",  "cpu",
                                                                 "time", "output", "idle", "policy", "agent", "shutdown"};

struct End {
  std::string reason;                // of kEndReasons
  std::optional<std::string> limit;  // its name, which ends with its unit
  std::optional<std::int64_t> allowed,
      figure;                                // the limit's value, and the value reached; after an exit, figure is the exit code
  std::optional<std::string> signal, cause;  // "SIGSEGV"; the word behind `reason` where it says more
};

// word: the launcher's, or the reason that the agent gave when it asked for the end. A word without a row is the agent's.
[[nodiscard]] End end_of(std::string_view word);
[[nodiscard]] End exit_end(int exit_code);
[[nodiscard]] End time_end(std::string limit, std::int64_t allowed, std::int64_t figure);
// From the event that reports the end, or from the last record of the session's log.
[[nodiscard]] End session_end(const json::Value& event);
[[nodiscard]] End exec_end(const json::Value& event, std::int64_t hard_timeout_ms);
// The form that is kept for a later agent, and back. A value of another form is read as "agent_restart".
[[nodiscard]] json::Value kept_end(const End& end);
[[nodiscard]] End end_from(const json::Value& kept);

}  // namespace caisson::bridge
