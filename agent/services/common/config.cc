#include "agent/services/common/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace caisson::services {
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

// "3.12", "3.12.4", "python3.12" -> "python3.12".
std::string kernel_name(std::string_view version) {
  if (version.starts_with("python")) version.remove_prefix(6);
  const std::size_t minor = version.find('.');
  const std::size_t micro = minor == std::string_view::npos ? minor : version.find('.', minor + 1);
  return version.empty() ? "" : "python" + std::string(version.substr(0, micro));
}

}  // namespace

std::shared_ptr<OutputBudget> budget_of(const Config& config) {
  return config.budget ? config.budget : std::make_shared<OutputBudget>(config.total_cap_bytes);
}

Config config_from_env() {
  Config config;
  take("MAX_BASH_SESSIONS", config.max_bash_sessions, 1, 100'000);
  take("MAX_SHELL_SESSIONS", config.max_shell_sessions, 1, 100'000);
  take("MAX_JUPYTER_SESSIONS", config.max_jupyter_sessions, 1, 1000);
  take("CAISSON_JUPYTER_IDLE_SECONDS", config.jupyter_idle, 0, 365 * 24 * 3600);
  take("CAISSON_KERNEL_POOL", config.prepared_kernels, 0, 16);
  take("MAX_CODE_SESSIONS", config.max_code_sessions, 1, 100'000);
  take("CAISSON_WARM_SESSIONS", config.warm_sessions, 0, 64);
  take("CAISSON_SESSION_IDLE_SECONDS", config.idle_expiry, 0, 365 * 24 * 3600);
  take("CAISSON_IMPLICIT_IDLE_SECONDS", config.implicit_idle, 0, 365 * 24 * 3600);
  take("CAISSON_OUTPUT_CAP_BYTES", config.stream_cap_bytes, 64 * 1024, 1u << 30);
  take("CAISSON_OUTPUT_TOTAL_BYTES", config.total_cap_bytes, 1 << 20, std::size_t{512} << 20);
  config.max_implicit_sessions = std::min(config.max_implicit_sessions, config.max_shell_sessions);
  config.max_implicit_kernels = std::min(config.max_implicit_kernels, config.max_jupyter_sessions);
  config.prepare_at_start = std::getenv("CAISSON_KERNEL_POOL") != nullptr && config.prepared_kernels > 0;
  if (const char* version = std::getenv("PYTHON_VERSION"); version != nullptr) config.python_version = kernel_name(version);
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') config.user = user;
  if (const char* workspace = std::getenv("WORKSPACE"); workspace != nullptr && *workspace == '/') config.directory = workspace;
  return config;
}

}  // namespace caisson::services
