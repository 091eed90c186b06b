#include "agent/services/common/service_limits.h"

#include <algorithm>
#include <string_view>

namespace caisson::services {
namespace {

template <class T>
Status take(const Variable& row, T& value) {
  TRY_ASSIGN(const std::int64_t number, number_from_env(row));
  value = T(number);
  return {};
}

Status take(const Variable& row, std::optional<bool>& value) {
  const std::string text = text_from_env(row);
  if (text == "true" || text == "1") value = true;
  else if (text == "false" || text == "0") value = false;
  else if (!text.empty()) return fail(Code::invalid_argument, std::string(row.name) + " is true or false");
  return {};
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

Result<Config> config_from_env() {
  Config config;
  TRY(take(variable("MAX_BASH_SESSIONS"), config.max_bash_sessions));
  TRY(take(variable("MAX_SHELL_SESSIONS"), config.max_shell_sessions));
  TRY(take(variable("MAX_JUPYTER_SESSIONS"), config.max_jupyter_sessions));
  TRY(take(variable("CAISSON_JUPYTER_IDLE_SECONDS"), config.jupyter_idle));
  TRY(take(variable("CAISSON_KERNEL_POOL"), config.prepared_kernels));
  TRY(take(variable("MAX_CODE_SESSIONS"), config.max_code_sessions));
  TRY(take(variable("CAISSON_WARM_SESSIONS"), config.warm_sessions));
  TRY(take(variable("CAISSON_SESSION_IDLE_SECONDS"), config.idle_expiry));
  TRY(take(variable("CAISSON_IMPLICIT_IDLE_SECONDS"), config.implicit_idle));
  TRY(take(variable("CAISSON_OUTPUT_CAP_BYTES"), config.stream_cap_bytes));
  TRY(take(variable("CAISSON_OUTPUT_TOTAL_BYTES"), config.total_cap_bytes));
  TRY(take(variable("DISPLAY_WIDTH"), config.display_width));
  TRY(take(variable("DISPLAY_HEIGHT"), config.display_height));
  if (std::string path = text_from_env(variable("AIO_SKILLS_PATH")); !path.empty()) config.skills_path = std::move(path);
  config.homepage = text_from_env(variable("HOMEPAGE"));
  config.mcp_servers = text_from_env(variable("CAISSON_MCP_SERVERS"));
  if (config.mcp_servers.empty()) config.mcp_servers = variable("CAISSON_MCP_SERVERS").text;
  config.extra_mcp_servers = text_from_env(variable("EXTRA_MCP_SERVERS"));
  config.browser_locale = text_from_env(variable("CHROME_UI_LANG"));
  if (config.browser_locale.empty()) config.browser_locale = text_from_env(variable("BROWSER_LANG"));
  if (config.browser_locale.empty()) config.browser_locale = variable("BROWSER_LANG").text;
  config.browser_user_agent = text_from_env(variable("BROWSER_USER_AGENT"));
  config.browser_extra_args = text_from_env(variable("BROWSER_EXTRA_ARGS"));
  TRY(take(variable("BROWSER_ALLOW_FILE_SELECTION_DIALOGS"), config.browser_file_dialogs));
  config.max_implicit_sessions = std::min(config.max_implicit_sessions, config.max_shell_sessions);
  config.max_implicit_kernels = std::min(config.max_implicit_kernels, config.max_jupyter_sessions);
  config.prepare_at_start = !text_from_env(variable("CAISSON_KERNEL_POOL")).empty() && config.prepared_kernels > 0;
  config.python_version = kernel_name(text_from_env(variable("PYTHON_VERSION")));
  if (std::string user = text_from_env(variable("USER")); !user.empty()) config.user = std::move(user);
  if (std::string directory = text_from_env(variable("WORKSPACE")); directory.starts_with('/'))
    config.directory = std::move(directory);
  return config;
}

}  // namespace caisson::services
