#include "agent/routes/shell_results.h"

#include "agent/services/common/text.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::ShellCommand;
using services::ShellSession;
using services::ShellStatus;

ConsoleRecord record_of(services::ConsoleEntry entry) {
  return {std::move(entry.ps1), std::move(entry.command), std::move(entry.output)};
}

}  // namespace

ShellCommandResult command_result(const ShellSession& session, const ShellCommand& command, ShellStatus outcome, bool truncate) {
  const std::size_t most = truncate ? kShellCharacters : 0;
  ShellCommandResult result{
      .session_id = session.id, .command = command.params.command, .status = std::string(services::status_name(outcome))};
  services::ConsoleEntry entry = session.entry_of(command, most);
  if (command.finished) result.output = entry.output;
  if (command.exit_code) result.exit_code = *command.exit_code;
  result.end = command.end_if_over();
  result.console.emplace().push_back(record_of(std::move(entry)));
  return result;
}

ShellViewResult view_result(const ShellSession& session) {
  ShellViewResult result;
  result.output = services::terminal_text(session.screen(), 0);
  result.session_id = session.id;
  result.status = latest_status(session);
  std::vector<ConsoleRecord>& console = result.console.emplace();
  for (const services::ConsoleEntry& entry : session.console()) console.push_back(record_of(entry));
  if (const auto current = session.current()) console.push_back(record_of(session.entry_of(*current, kShellCharacters)));
  if (const auto latest = session.newest()) {
    result.command = latest->params.command;
    if (latest->exit_code) result.exit_code = *latest->exit_code;
    result.end = latest->end_if_over();
  }
  return result;
}

ShellSessionInfo session_info(const ShellSession& session) {
  ShellSessionInfo info{.working_dir = session.cwd(),
                        .created_at = sys::rfc3339(session.created_ns),
                        .last_used_at = sys::rfc3339(session.last_used_ns)};
  info.age_seconds = std::chrono::duration_cast<std::chrono::seconds>(bridge::Clock::now() - session.created).count();
  const auto current = session.current();
  info.status = current ? "running" : "idle";
  if (current) info.current_command = current->params.command;
  return info;
}

std::string latest_status(const ShellSession& session) {
  const auto latest = session.newest();
  return std::string(services::status_name(latest ? latest->status : ShellStatus::completed));
}

std::string exec_failure(const ShellCommand& command) {
  if (!command.failure.empty()) return command.failure;
  if (command.dir_missing) return "exec_dir does not exist or cannot be entered: " + command.params.exec_dir;
  return "";
}

}  // namespace caisson::routes
