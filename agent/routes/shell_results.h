// Turns the states of a shell session into the contract's responses, for JSON answers and event streams.
#pragma once

#include "agent/routes/shell_types.h"
#include "agent/services/shell/shell_service.h"

namespace caisson::routes {

inline constexpr std::size_t kShellCharacters = 30'000;

// The answer to exec when its wait ended with `outcome`. While the command runs, output and exit_code are null; console has its
// output so far.
[[nodiscard]] ShellCommandResult command_result(const services::ShellSession& session, const services::ShellCommand& command,
                                                services::ShellStatus outcome, bool truncate);
[[nodiscard]] ShellViewResult view_result(const services::ShellSession& session);
[[nodiscard]] ShellSessionInfo session_info(const services::ShellSession& session);
// Status of the last requested command; a session without commands is ready, which is "completed".
[[nodiscard]] std::string latest_status(const services::ShellSession& session);
// Why exec failed as a tool; "": it did not.
[[nodiscard]] std::string exec_failure(const services::ShellCommand& command);

}  // namespace caisson::routes
