// Limits of the services, read once at start from the environment (settings.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "agent/services/common/output_buffer.h"
#include "agent/services/common/settings.h"

namespace caisson::services {

struct CodingSettings;  // agent/services/coding/coding_settings.h

struct Config {
  static constexpr std::size_t count(const Variable& row) { return static_cast<std::size_t>(row.fallback); }
  static constexpr std::chrono::seconds time(const Variable& row) { return std::chrono::seconds(row.fallback); }

  std::size_t max_bash_sessions = count(variable("MAX_BASH_SESSIONS"));
  std::size_t max_shell_sessions = count(variable("MAX_SHELL_SESSIONS"));
  std::size_t max_jupyter_sessions = count(variable("MAX_JUPYTER_SESSIONS"));
  std::size_t max_implicit_kernels = 8;  // jupyter sessions made by requests that named none, until a request names them
  std::chrono::seconds jupyter_idle = time(variable("CAISSON_JUPYTER_IDLE_SECONDS"));
  std::size_t prepared_kernels = count(variable("CAISSON_KERNEL_POOL"));
  bool prepare_at_start =
      false;                   // CAISSON_KERNEL_POOL is set: the default workspace's kernels are started before the first request
  std::string python_version;  // PYTHON_VERSION: the default kernel's name; "": Debian's
  std::size_t max_code_sessions = count(variable("MAX_CODE_SESSIONS"));
  std::size_t warm_sessions = count(variable("CAISSON_WARM_SESSIONS"));
  std::size_t max_implicit_sessions = 16;  // shell sessions made by requests that named none, terminals included
  std::chrono::seconds idle_expiry = time(variable("CAISSON_SESSION_IDLE_SECONDS"));
  std::chrono::seconds implicit_idle = time(variable("CAISSON_IMPLICIT_IDLE_SECONDS"));
  std::size_t stream_cap_bytes = count(variable("CAISSON_OUTPUT_CAP_BYTES"));
  std::size_t total_cap_bytes = count(variable("CAISSON_OUTPUT_TOTAL_BYTES"));
  std::shared_ptr<OutputBudget> budget;  // the workspace's part, shared by its services; absent: each service has its own
  std::size_t finished_commands = 32;    // of a bash session, whose output is remembered
  std::int64_t display_width = variable("DISPLAY_WIDTH").fallback, display_height = variable("DISPLAY_HEIGHT").fallback;
  std::string homepage, browser_locale, browser_user_agent, browser_extra_args;  // of Chromium's start
  std::optional<bool> browser_file_dialogs;
  std::string mcp_servers, extra_mcp_servers;  // CAISSON_MCP_SERVERS, EXTRA_MCP_SERVERS
  std::string skills_path{variable("AIO_SKILLS_PATH").text};
  std::shared_ptr<const CodingSettings> coding;  // absent: nothing is set
  // Variables, secrets among them, of shell sessions that begin with one of these programs, in the default workspace.
  std::map<std::string, std::map<std::string, std::string>> program_variables;
  std::string directory;              // WORKSPACE: where commands begin; "": what the launcher says
  std::string workspace = "default";  // its name at the launcher
  std::string user{variable("USER").text};
};

// Errors: invalid_argument, in one sentence: a variable makes no sense.
[[nodiscard]] Result<Config> config_from_env();
[[nodiscard]] std::shared_ptr<OutputBudget> budget_of(const Config& config);

}  // namespace caisson::services
