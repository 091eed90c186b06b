#include "agent/services/shell/shell_session.h"

#include "agent/services/common/text.h"
#include "agent/services/shell/shell_script.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr std::size_t kScreenBytes = 256 * 1024;
constexpr std::size_t kConsoleEntries = 16;
constexpr std::size_t kConsoleCharacters = 8'000;

// The text as a terminal shows it. LF alone would not return to the first column.
std::string for_screen(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

}  // namespace

std::string_view status_name(ShellStatus status) {
  switch (status) {
    case ShellStatus::running:
      return "running";
    case ShellStatus::completed:
      return "completed";
    case ShellStatus::no_change_timeout:
      return "no_change_timeout";
    case ShellStatus::hard_timeout:
      return "hard_timeout";
    case ShellStatus::terminated:
      return "terminated";
  }
  return "terminated";
}

std::string ShellCommand::text(std::size_t max_characters) const {
  std::string out = terminal_text(output, 0);
  if (shell_exited && (out == "exit" || out.ends_with("\nexit"))) {  // bash printed it, not the command
    out.erase(out.size() - 4);
    out.erase(out.find_last_not_of('\n') + 1);
  }
  return cut_middle(out, max_characters);
}

ShellSession::ShellSession(bridge::LauncherClient& launcher, const Config& config, std::shared_ptr<OutputBudget> budget,
                           Setup setup, std::shared_ptr<bridge::SessionHandle> session)
    : id(std::move(setup.id)),
      implicit(setup.implicit),
      for_person(setup.for_person),
      program(std::move(setup.program)),
      handle(std::move(session)),
      created(bridge::Clock::now()),
      changed(launcher.executor()),
      launcher_(launcher),
      config_(config),
      budget_(budget),
      screen_(std::move(budget), kScreenBytes),
      size_(setup.size),
      preserve_symlinks_(setup.preserve_symlinks),
      cwd_(std::move(setup.cwd)) {
  touch();
  created_ns = last_used_ns;
  record_ = Keep::make("shell", {{"session", handle->id}});
  screen_.keep_in(record_, 0);
  save();
}

void ShellSession::touch() {
  last_used = bridge::Clock::now();
  last_used_ns = sys::realtime_ns();
}

std::string ShellSession::ps1() const {
  const bool standard = config_.workspace == "default";  // whose WORKSPACE may be a folder of the home
  return prompt_text(config_.user, standard ? launcher_.greeting().home : config_.directory, cwd_);
}

ConsoleEntry ShellSession::entry_of(const ShellCommand& command, std::size_t max_characters) const {
  return {command.started ? command.ps1 : ps1(), command.params.command, command.text(max_characters)};
}

void ShellSession::resize(bridge::PtySize size) {
  size_ = size;
  if (terminal_) terminal_->resize(size);
  save();
  changed.notify_all();
}

// Only a program that a person started waits: a command of the API has its own time limits, and what the agent types must be read
// to be understood. A client that does not acknowledge is taken to keep up.
std::optional<bridge::Clock::time_point> ShellSession::held_by_viewers() {
  const bool persons = state_ == State::prompt || (state_ == State::running && current_ && !current_->ending);
  if (!for_person || !persons || queue_runs_) return std::nullopt;
  if (static_cast<std::size_t>(attached) > viewers.present()) return std::nullopt;
  return viewers.waits_until(screen_.end(), bridge::Clock::now());
}

void ShellSession::hold(bool still) {
  if (still == held_since_.has_value()) return;
  if (still) held_since_ = bridge::Clock::now();
  else stood_still_ += bridge::Clock::now() - *std::exchange(held_since_, std::nullopt);
  save();
  changed.notify_all();
}

ReadEnd ShellSession::read_terminal(const TerminalPtr& terminal, std::size_t limit) {
  const auto sink = [this, &terminal](std::string_view bytes) {
    if (terminal != terminal_) return;  // of a bash that no longer belongs to this session
    take_in(bytes);
  };
  const ReadEnd end = read_available(terminal->from, limit, sink, &record_);
  changed.notify_all();
  return end;
}

// One piece as a whole: a later agent finds all of it processed, or none.
void ShellSession::take_in(std::string_view bytes) {
  const TerminalPtr terminal = terminal_;
  const bool held = terminal->parser.holds();
  taking_ = true;
  for (const StreamItem& item : terminal->parser.feed(bytes)) take(item);
  taking_ = false;
  if (held || terminal->parser.holds() || std::exchange(unsaved_, false)) save();
  else record_.advance(ends());
}

void ShellSession::take(const StreamItem& item) {
  if (const auto* text = std::get_if<std::string>(&item)) take_text(*text);
  else take_marker(std::get<Marker>(item));
}

void ShellSession::take_text(std::string_view text) {
  // While the agent types, the terminal echoes its lines. They stay off the screen, which shows the command as the client wrote
  // it.
  if (state_ == State::starting || state_ == State::feeding || state_ == State::clearing) return;
  screen_.append(text);
  if (state_ != State::running || !current_) return;
  current_->output.append(text);
  current_->last_change = bridge::Clock::now();
  current_->changed.notify_all();
}

void ShellSession::take_marker(const Marker& marker) {
  unsaved_ = true;
  if (marker.kind == Marker::Kind::start) {
    if (state_ == State::feeding) take_start(marker.number == 1);
    return;
  }
  if (marker.kind == Marker::Kind::busy) {
    if (state_ == State::prompt) take_busy();
    return;
  }
  // The nonce is the new command's, so its line has run, although the command before had removed the function that reports it.
  if (state_ == State::feeding && !marker.older) take_start(true);
  if (!marker.path.empty() && marker.path.front() == '/') cwd_ = marker.path;
  if (marker.kind != Marker::Kind::prompt) return;
  state_ = State::prompt;
  line_dirty_ = false;
  typed_.clear();
  cleared_older_ = marker.older;
  if (current_) finish_current(marker.number, bridge::exit_end(marker.number));
}

void ShellSession::take_start(bool directory_entered) {
  state_ = State::running;
  if (latest_) retired_.push_back(latest_);
  current_ = latest_ = std::exchange(feeding_, nullptr);
  current_->started = true;
  current_->begun = bridge::Clock::now();
  current_->stood_before = stood_still_;
  current_->ps1 = ps1();
  current_->dir_missing = current_->params.strict && !directory_entered;
  current_->last_change = bridge::Clock::now();
  screen_.append(for_screen(current_->params.command + "\n"));
  save_command(*current_);
  current_->changed.notify_all();
}

void ShellSession::take_busy() {
  state_ = State::running;
  line_dirty_ = false;
  ShellExecParams params;
  params.command = std::exchange(typed_, {});
  while (params.command.ends_with('\n') || params.command.ends_with('\r')) params.command.pop_back();
  if (latest_) retired_.push_back(latest_);
  current_ = latest_ = std::make_shared<ShellCommand>(launcher_.executor(), std::move(params), budget_, config_.stream_cap_bytes);
  current_->started = true;
  current_->ps1 = ps1();
  keep_command(*current_);
}

void ShellSession::finish_current(int exit_code, bridge::End end) {
  const CommandPtr command = std::exchange(current_, nullptr);
  command->status = command->ending.value_or(ShellStatus::completed);
  if (command->status == ShellStatus::completed) command->exit_code = exit_code;
  if (command->status == ShellStatus::hard_timeout) {
    const auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(bridge::Clock::now() - command->begun);
    const auto most = static_cast<std::int64_t>(command->params.hard_timeout.value_or(0) * 1000);
    command->end = bridge::time_end("hard_timeout_ms", most, ran.count());
  } else if (!command->end) {
    command->end = std::move(end);
  }
  console_.push_back(entry_of(*command, kConsoleCharacters));
  console_.back().command = cut_middle(std::move(console_.back().command), kConsoleCharacters);
  if (console_.size() > kConsoleEntries) console_.pop_front();
  ++console_count_;
  save_console();
  touch();
  finish(command);
}

void ShellSession::finish(const CommandPtr& command) {
  command->finished = true;
  if (command->status == ShellStatus::running) command->status = ShellStatus::terminated;
  if (!command->end) command->end = bridge::end_of("not_run");
  save_command(*command);
  save();
  command->changed.notify_all();
  changed.notify_all();
}

void ShellSession::take_exit(const bridge::ExecExit& exit) {
  taking_ = true;  // the record keeps it until its bash is gone for a later agent, too
  const std::string rest = terminal_->parser.take_rest();
  if (!rest.empty()) take_text(rest);
  const TerminalPtr terminal = std::exchange(terminal_, nullptr);
  state_ = State::dead;
  line_dirty_ = false;
  typed_.clear();
  if (current_) {
    current_->shell_exited = exit.signal.empty();
    finish_current(exit.exit_code, exit.end);
  }
  screen_.append("\r\n");
  taking_ = false;
  save();
  terminal->close();
  changed.notify_all();
}

void ShellSession::shut(std::string reason) {
  if (std::exchange(closed_, true)) return;
  forget_kept();
  const bridge::End end = handle->end.reason.empty() ? bridge::end_of(reason) : handle->end;
  std::deque<CommandPtr> waiting = std::exchange(queue_, {});
  if (feeding_) waiting.push_back(std::exchange(feeding_, nullptr));
  if (current_) {
    if (!current_->ending) current_->ending = ShellStatus::terminated;
    finish_current(0, end);
  }
  for (const CommandPtr& command : waiting) {
    command->failure = reason;
    command->end = end;
    command->status = ShellStatus::terminated;
    finish(command);
  }
  if (terminal_) terminal_->close();
  terminal_.reset();
  state_ = State::dead;
  changed.notify_all();
}

}  // namespace caisson::services
