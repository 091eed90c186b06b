// How the states of a shell session become the contract's responses: shared by the JSON and the event stream answers.
#pragma once

#include "agent/routes/shell_types.h"
#include "agent/services/shell/shell_service.h"

namespace caisson::routes {

inline constexpr std::size_t kShellCharacters = 30'000;

// The answer to exec when its wait ended with `outcome`. output and exit_code stay null while the command runs; what it
// wrote so far is in console.
[[nodiscard]] ShellCommandResult command_result(const services::ShellSession& session, const services::ShellCommand& command,
                                                services::ShellStatus outcome, bool truncate);
[[nodiscard]] ShellViewResult view_result(const services::ShellSession& session);
[[nodiscard]] ShellSessionInfo session_info(const services::ShellSession& session);
// Status of the command that was asked for last; a session without one is ready, which is "completed".
[[nodiscard]] std::string latest_status(const services::ShellSession& session);
// Why exec failed as a tool; empty: it did not.
[[nodiscard]] std::string exec_failure(const services::ShellCommand& command);

}  // namespace caisson::routes
