#include "agent/session/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace caisson::session {
namespace {

// A value that is no number, or out of range, leaves the default: a typo must not lift a limit.
template <class T>
void take(const char* name, T& value, std::size_t lowest, std::size_t highest) {
  const char* text = std::getenv(name);
  if (text == nullptr) return;
  const std::string_view view(text);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  if (error != std::errc() || end != view.data() + view.size()) return;
  if (number >= lowest && number <= highest) value = T(number);
}

}  // namespace

Config config_from_env() {
  Config config;
  take("MAX_BASH_SESSIONS", config.max_bash_sessions, 1, 100'000);
  take("MAX_SHELL_SESSIONS", config.max_shell_sessions, 1, 100'000);
  take("MAX_CODE_SESSIONS", config.max_code_sessions, 1, 100'000);
  take("CAISSON_WARM_SESSIONS", config.warm_sessions, 0, 64);
  take("CAISSON_SESSION_IDLE_SECONDS", config.idle_expiry, 0, 365 * 24 * 3600);
  take("CAISSON_OUTPUT_CAP_BYTES", config.stream_cap_bytes, 64 * 1024, 1u << 30);
  take("CAISSON_OUTPUT_TOTAL_BYTES", config.total_cap_bytes, 1 << 20, std::size_t{1} << 36);
  config.max_implicit_sessions = std::min(config.max_implicit_sessions, config.max_shell_sessions);
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') config.user = user;
  if (const char* workspace = std::getenv("WORKSPACE"); workspace != nullptr && *workspace == '/') config.workspace = workspace;
  return config;
}

}  // namespace caisson::session
