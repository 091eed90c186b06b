// ShellSession: one bash at a terminal whose state persists, and the queue of commands for it. They are typed one after the
// other; markers in the stream (markers.h) say where each begins and ends. When bash ends (`exit`, `exec`, kill -9 $$) the
// command ends with its code, and the next command gets a new bash in the last known directory, without the old variables.
// shell_session.cc changes state; shell_runner.cc has the coroutines.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/shell/shell_command.h"
#include "agent/services/shell/terminal.h"
#include "agent/services/shell/viewers.h"

namespace caisson::services {

class ShellSession {
 public:
  using CommandPtr = std::shared_ptr<ShellCommand>;
  using Pointer = std::shared_ptr<ShellSession>;

  struct Setup {
    std::string id;
    bool implicit = false;    // made by a request that named none
    bool for_person = false;  // a terminal: line editing on, ends with its bash
    std::string cwd;
    bool preserve_symlinks = false;
    bridge::PtySize size;
    std::string program;  // that it begins with, whose variables it has (Config::program_variables); "": none
  };
  ShellSession(bridge::LauncherClient& launcher, const Config& config, std::shared_ptr<OutputBudget> budget, Setup setup,
               std::shared_ptr<bridge::SessionHandle> handle);

  // --- shell_session.cc: state, never waits ---
  void touch();
  [[nodiscard]] bool busy() const { return !queue_.empty() || feeding_ || current_ || attached > 0 || starting > 0; }
  [[nodiscard]] CommandPtr current() const { return current_; }  // runs now, typed by a person too
  [[nodiscard]] CommandPtr latest() const { return latest_; }    // runs or ran last
  // The last unfinished command of a client; otherwise latest().
  [[nodiscard]] CommandPtr newest() const { return !queue_.empty() ? queue_.back() : feeding_ ? feeding_ : latest_; }
  [[nodiscard]] bool alive() const { return state_ != State::dead; }  // a bash runs
  [[nodiscard]] const std::string& cwd() const { return cwd_; }
  [[nodiscard]] const std::deque<ConsoleEntry>& console() const { return console_; }
  [[nodiscard]] const OutputBuffer& screen() const { return screen_; }  // all that a terminal would have shown
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] std::string ps1() const;
  [[nodiscard]] ConsoleEntry entry_of(const ShellCommand& command, std::size_t max_characters) const;
  void resize(bridge::PtySize size);
  [[nodiscard]] bridge::PtySize size() const { return size_; }
  // Ends every command and closes the terminal. The caller destroys the launcher's session.
  void shut(std::string reason);
  // A session of the previous agent, from the records of session, console and commands, with the bytes that it read last.
  struct LeftParts {
    Keep::Left session;
    std::vector<Keep::Left> consoles, commands;
  };
  void restore(LeftParts parts);
  [[nodiscard]] const std::string& left_exec() const { return left_exec_; }
  // Keeps its state for a later agent. Does nothing while read bytes are being processed.
  void save();
  // Called when its workspace is paused or continues. The time limits of commands stand still during a pause.
  void hold(bool still);

  // --- shell_runner.cc: coroutines ---
  // limit: the workspace has no room for its text.
  [[nodiscard]] static Result<CommandPtr> enqueue(Pointer self, ShellExecParams params);
  // Continues a restored session. Without its terminal its bash has ended.
  static void attach(Pointer self, std::optional<bridge::ExecStarted> started);
  // Starts bash if none runs, and waits for its prompt.
  [[nodiscard]] static task<void> ensure_shell(Pointer self);
  // Input for the running command; at the prompt, a line typed by a person.
  [[nodiscard]] static task<void> type(Pointer self, std::string input);
  // Ends a command: Ctrl-C, Ctrl-\, then SIGKILL for all of the terminal's processes. Removes a queued command from the queue.
  [[nodiscard]] static task<void> end_command(Pointer self, CommandPtr command, ShellStatus as);

  const std::string id;
  const bool implicit;
  const bool for_person;
  const std::string program;
  const std::shared_ptr<bridge::SessionHandle> handle;
  std::int64_t created_ns = 0, last_used_ns = 0;
  bridge::Clock::time_point created, last_used;
  double no_change_timeout = 120;
  int attached = 0;  // WebSockets and event streams
  int starting = 0;
  Viewers viewers;           // those of the WebSockets that acknowledge
  bridge::Notifier changed;  // state, screen, size or acknowledgements

 private:
  enum class State { dead, starting, prompt, clearing, feeding, running };
  using TerminalPtr = std::shared_ptr<Terminal>;

  void take(const StreamItem& item);
  void take_text(std::string_view text);
  void take_marker(const Marker& marker);
  void take_start(bool directory_entered);
  void take_busy();
  void take_exit(const bridge::ExecExit& exit);
  void finish_current(int exit_code, bridge::End end);
  void finish(const CommandPtr& command);
  [[nodiscard]] std::optional<bridge::Clock::time_point> held_by_viewers();
  ReadEnd read_terminal(const TerminalPtr& terminal, std::size_t limit);
  void take_in(std::string_view bytes);
  void keep_command(ShellCommand& command);
  void save_command(ShellCommand& command);
  void save_console();
  [[nodiscard]] json::Value body() const;
  [[nodiscard]] Keep::Ends ends() const;
  void forget_kept();

  static task<void> read_loop(Pointer self, TerminalPtr terminal);
  static asio::awaitable<void> await_viewers(Pointer self, TerminalPtr terminal);
  static task<void> watch_exit(Pointer self, TerminalPtr terminal);
  static task<void> run_queue(Pointer self);
  static task<void> resume(Pointer self);
  static task<void> await_feeding(Pointer self, CommandPtr command);
  static task<void> run_one(Pointer self, CommandPtr command);
  static task<void> start_bash(Pointer self, bool read_rc);
  static task<void> clear_line(Pointer self);
  static task<void> clear_again(Pointer self);
  static task<void> enforce_hard_timeout(Pointer self, CommandPtr command);
  static task<void> kill_bash(Pointer self);
  // Waits for a state other than `state`; true: it came, and bash lives.
  static asio::awaitable<bool> await_leaving(Pointer self, State state, bridge::Clock::time_point deadline);
  static asio::awaitable<bool> await_end(CommandPtr command, std::chrono::milliseconds limit);

  bridge::LauncherClient& launcher_;
  const Config& config_;
  std::shared_ptr<OutputBudget> budget_;
  Keep::Record record_, console_record_;  // what follows is in the first
  OutputBuffer screen_;
  State state_ = State::dead;
  TerminalPtr terminal_;
  bridge::PtySize size_;
  bool preserve_symlinks_;
  bool queue_runs_ = false;
  bool bash_starts_ = false;
  bool cleared_older_ = false;  // the last prompt does not belong to the command typed last
  bool line_dirty_ = false;     // the prompt has text that was not run
  bool typing_ = false;         // the command is not written completely
  bool closed_ = false;
  bool taking_ = false;  // bytes that count only when all of them have been processed
  bool unsaved_ = false;
  std::int64_t console_count_ = 0;
  std::string left_exec_;
  std::vector<CommandPtr> retired_;  // the record refers to their output until the next save()
  std::optional<bridge::Clock::time_point> held_since_;
  bridge::Clock::duration stood_still_{};
  std::string cwd_;
  std::string typed_;  // text typed at the prompt, for the record
  std::deque<CommandPtr> queue_;
  CommandPtr feeding_, current_, latest_;
  std::deque<ConsoleEntry> console_;
};

}  // namespace caisson::services
