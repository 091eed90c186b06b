// The variables that set up the agent: one row each, from which reading, bounds, defaults and the table in agent/README.md come.
// The launcher makes the first five itself and passes on the others (launcher/base/agent_variables.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/agent_variables.h"
#include "launcher/base/result.h"
#include "launcher/base/word.h"

namespace caisson::services {

struct Variable {
  std::string_view name;
  std::int64_t fallback, lowest, highest;  // of a number; highest 0: it is a text
  std::string_view text;                   // the default of a text
  std::string_view meaning;
  [[nodiscard]] constexpr bool is_number() const { return highest != 0; }
};

constexpr Variable number_row(std::string_view name, std::int64_t fallback, std::int64_t lowest, std::int64_t highest,
                              std::string_view meaning) {
  return {name, fallback, lowest, highest, "", meaning};
}
constexpr Variable text_row(std::string_view name, std::string_view text, std::string_view meaning) {
  return {name, 0, 0, 0, text, meaning};
}

inline constexpr std::int64_t kYear = 365LL * 24 * 3600;
inline constexpr auto kVariables = std::to_array<Variable>({
    text_row("CAISSON_BIND", "0.0.0.0", "address to listen on"),
    number_row("CAISSON_PORT", 8080, 1, 65'535, "port to listen on"),
    text_row("SANDBOX_API_KEY", "",
             "the key, which the launcher makes where none is given; taken as `X-AIO-API-Key`, `Authorization: Bearer` or "
             "`?api_key=`"),
    text_row("CAISSON_AUTH", "key",
             "`none`: no key is required. Only requests whose `Host` is an address, localhost or a listed name are then served; "
             "others get 403"),
    text_row("WORKSPACE", "/home/gem", "directory in which commands of the default workspace begin"),
    number_row("CAISSON_SHUTDOWN_SECONDS", 15, 0, 3600, "time of all shutdown hooks together"),
    text_row("TZ", "UTC", "time zone that `GET /v1/sandbox` reports"),
    text_row("USER", "gem", "name that `GET /v1/sandbox` reports and prompts show"),
    text_row("CAISSON_ALLOW_ORIGIN", "", "origins of web pages that may call, comma-separated; they get CORS headers"),
    text_row("CAISSON_ALLOW_HOST", "",
             "further names of the server with `CAISSON_AUTH=none`, comma-separated; the names in `CAISSON_ALLOW_ORIGIN` are "
             "included"),
    number_row("MAX_SHELL_SESSIONS", 128, 1, 100'000, "shell sessions at a time; the longest idle one makes room"),
    number_row("MAX_BASH_SESSIONS", 128, 1, 100'000, "bash sessions at a time; the longest idle one makes room"),
    number_row("MAX_CODE_SESSIONS", 64, 1, 100'000, "sessions for code of a workspace: runs, REPLs and prepared ones together"),
    number_row("MAX_JUPYTER_SESSIONS", 32, 1, 1000,
               "notebook sessions at a time. The longest idle one makes room; if more than 8 were never named, one of these"),
    number_row("CAISSON_WARM_SESSIONS", 2, 0, 64, "sessions kept prepared of each kind that is in use; 0: none"),
    number_row("CAISSON_SESSION_IDLE_SECONDS", 3600, 0, kYear,
               "idle sessions of bash, shells and files, and watches, end after that; 0: never. A REPL ends after the "
               "`max_idle_time` of its request, by default a day"),
    number_row(
        "CAISSON_IMPLICIT_IDLE_SECONDS", 60, 0, kYear,
        "a bash session that `exec` made without an id ends that long after its last command, unless one of its processes "
        "lives or a later command named it. Its id stays valid: its output can be read, and a command starts it again where "
        "it was. 0: it is kept like any other"),
    number_row("CAISSON_JUPYTER_IDLE_SECONDS", 1800, 0, kYear, "idle notebook sessions and unused ready kernels end; 0: never"),
    number_row("CAISSON_KERNEL_POOL", 1, 0, 16,
               "kernels kept ready in each workspace that has used one; when set, the default workspace's are made at start"),
    text_row("PYTHON_VERSION", "",
             "the default kernel, such as `3.12`; `python3` is its other name. Debian's if that is not installed"),
    number_row("CAISSON_OUTPUT_CAP_BYTES", 8 << 20, 64 << 10, 1 << 30, "kept output of one stream"),
    number_row("CAISSON_OUTPUT_TOTAL_BYTES", 256 << 20, 1 << 20, 512 << 20,
               "kept output of all sessions of all workspaces together, with everything else that is kept for them (\"Room\")"),
    number_row("CAISSON_HOOK_SECONDS", 60, 1, 3600, "time of each `RUN_HOOK_*`"),
    text_row("RUN_HOOK_INIT", "",
             "command of the operator's, at most 32 KiB, which finds only the system's programs: before all else"),
    text_row("RUN_HOOK_PRE_SERVICES", "", "the same, before the first request is taken"),
    text_row("RUN_HOOK_POST_READY", "", "the same, once `/readyz` is 200"),
});

// The row of this name. A name without a row does not compile.
consteval const Variable& variable(std::string_view name) {
  const auto row = std::ranges::find(kVariables, name, &Variable::name);
  if (row == kVariables.end()) throw "no such variable";
  return *row;
}

// Every variable that the launcher passes on has a row.
static_assert([] {
  for (std::ptrdiff_t i = 0; i < count_words(kAgentVariables); ++i)
    if (std::ranges::find(kVariables, word(kAgentVariables, static_cast<std::size_t>(i)), &Variable::name) == kVariables.end())
      return false;
  return true;
}());

// The value in the environment, or the row's default. Errors: invalid_argument, in one sentence: not a number within the bounds.
[[nodiscard]] Result<std::int64_t> number_from_env(const Variable& row);
// Empty where it is not set.
[[nodiscard]] std::string text_from_env(const Variable& row);
// The rows as a table in Markdown.
[[nodiscard]] std::string variables_text();

}  // namespace caisson::services
