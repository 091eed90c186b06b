// ShellCommand: one command of a shell session, queued, running or over. The session holds it during its turn, and so does each
// request that waits for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/bridge/end.h"
#include "agent/bridge/notifier.h"
#include "agent/services/common/output_buffer.h"

namespace caisson::services {

// Wire names as in the contract. no_change_timeout is the outcome of one wait, never a state of the command.
enum class ShellStatus { running, completed, no_change_timeout, hard_timeout, terminated };
[[nodiscard]] std::string_view status_name(ShellStatus status);

struct ShellExecParams {
  std::string command;
  std::string exec_dir;
  bool strict = false;
  bool preserve_symlinks = false;
  std::optional<double> hard_timeout;
};

struct ShellCommand {
  ShellCommand(asio::any_io_executor executor, ShellExecParams p, std::shared_ptr<OutputBudget> budget, std::size_t cap)
      : params(std::move(p)), output(std::move(budget), cap), changed(std::move(executor)) {}

  ShellExecParams params;
  http::Budget::Share text_share;  // of the command's text
  Keep::Record record;             // what follows is in it
  OutputBuffer output;             // raw bytes of the terminal
  bridge::Notifier changed;
  bridge::Clock::time_point last_change = bridge::Clock::now();  // queued, started or wrote something
  std::string ps1;                                               // the prompt at which it was typed
  bool started = false;
  bool finished = false;
  bool shell_exited = false;          // bash itself ended: it prints "exit"
  bool dir_missing = false;           // strict, and exec_dir could not be entered
  std::string failure;                // why it could not be run at all
  std::optional<ShellStatus> ending;  // asked to end, with this status
  ShellStatus status = ShellStatus::running;
  std::optional<int> exit_code;                            // only when completed
  bridge::Clock::time_point begun = bridge::Clock::now();  // when it was typed
  bridge::Clock::duration stood_before{};                  // its session, until then
  std::optional<bridge::End> end;                          // why it has ended, or will end

  [[nodiscard]] std::optional<bridge::End> end_if_over() const { return finished ? end : std::nullopt; }
  // Output without its prompt, control sequences, and final newlines.
  [[nodiscard]] std::string text(std::size_t max_characters) const;
};

struct ConsoleEntry {
  std::string ps1, command, output;
};

}  // namespace caisson::services
