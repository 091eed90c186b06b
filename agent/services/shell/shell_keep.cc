// The part of a shell session that outlives the agent. The session's record lists the commands by their records' numbers and
// takes precedence: it says whether a command is over, and how much output a running one has.
#include <algorithm>

#include "agent/services/shell/shell_session.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::int64_t kNoCommand = -1;
constexpr std::string_view kStates[] = {"dead", "starting", "prompt", "clearing", "feeding", "running"};

std::int64_t micros(bridge::Clock::duration time) { return duration_cast<microseconds>(time).count(); }

// Converts a time of the steady clock, which restarts with the machine, to the real clock, and back.
std::int64_t real_of(bridge::Clock::time_point when) {
  return sys::realtime_ns() - duration_cast<nanoseconds>(bridge::Clock::now() - when).count();
}
bridge::Clock::time_point steady_of(std::int64_t real_ns) {
  constexpr std::int64_t kMonth = 31LL * 24 * 3600 * 1'000'000'000;
  return bridge::Clock::now() - nanoseconds(std::clamp<std::int64_t>(sys::realtime_ns() - real_ns, 0, kMonth));
}

std::int64_t number(const json::Value& body, const char* key) { return json::number_of(body, key).value_or(0); }

std::int64_t name_of(const ShellSession::CommandPtr& command) {
  return command && command->record.keep() != nullptr ? std::int64_t{command->record.index()} : kNoCommand;
}

std::optional<ShellStatus> status_of(const std::string& name) {
  for (const ShellStatus one : {ShellStatus::running, ShellStatus::completed, ShellStatus::hard_timeout, ShellStatus::terminated})
    if (status_name(one) == name) return one;
  return std::nullopt;
}

}  // namespace

json::Value ShellSession::body() const {
  json::Value out{{"session", handle->id},
                  {"id", id},
                  {"implicit", implicit},
                  {"for_person", for_person},
                  {"program", program},
                  {"cwd", cwd_},
                  {"preserve_symlinks", preserve_symlinks_},
                  {"cols", size_.cols},
                  {"rows", size_.rows},
                  {"created_ns", created_ns},
                  {"no_change_timeout_ms", static_cast<std::int64_t>(std::clamp(no_change_timeout, -1.0, 1e9) * 1000)},
                  {"state", std::string(kStates[static_cast<std::size_t>(state_)])},
                  {"line_dirty", line_dirty_},
                  {"typed", hex(typed_)},
                  {"typing", typing_},
                  {"stood_still_us", micros(stood_still_)},
                  {"console_count", console_count_},
                  {"queue", json::Value::array()},
                  {"feeding", name_of(feeding_)},
                  {"current", name_of(current_)},
                  {"latest", name_of(latest_)}};
  for (const CommandPtr& command : queue_) out["queue"].push_back(name_of(command));
  if (held_since_) out["held_since_ns"] = real_of(*held_since_);
  if (!terminal_) return out;
  const MarkerParser::Memory parser = terminal_->parser.memory();
  out["exec"] = terminal_->exec->id;
  out["nonce"] = parser.nonce;
  out["older"] = parser.older;
  out["held"] = hex(parser.held);
  out["modes"] = terminal_->modes();
  return out;
}

Keep::Ends ShellSession::ends() const { return {screen_.end(), current_ ? current_->output.end() : 0}; }

void ShellSession::save() {
  if (closed_ || record_.keep() == nullptr) return;
  if (taking_) {
    unsaved_ = true;
    return;
  }
  unsaved_ = false;
  (void)record_.write(body(), ends());  // without room the older one stays
  retired_.clear();
}

void ShellSession::keep_command(ShellCommand& command) {
  if (record_.keep() == nullptr) return;
  command.record = Keep::make("shell-command", {{"session", handle->id}});
  command.output.keep_in(command.record, 0);
  save_command(command);
}

void ShellSession::save_command(ShellCommand& command) {
  if (command.record.keep() == nullptr) return;
  json::Value out{{"session", handle->id},
                  {"command", command.params.command},
                  {"exec_dir", command.params.exec_dir},
                  {"strict", command.params.strict},
                  {"preserve_symlinks", command.params.preserve_symlinks},
                  {"ps1", command.ps1},
                  {"started", command.started},
                  {"finished", command.finished},
                  {"shell_exited", command.shell_exited},
                  {"dir_missing", command.dir_missing},
                  {"failure", command.failure},
                  {"status", std::string(status_name(command.status))},
                  {"begun_ns", real_of(command.begun)},
                  {"stood_before_us", micros(command.stood_before)}};
  if (command.params.hard_timeout)
    out["hard_timeout_ms"] = static_cast<std::int64_t>(std::clamp(*command.params.hard_timeout, 0.0, 1e9) * 1000);
  if (command.ending) out["ending"] = std::string(status_name(*command.ending));
  if (command.exit_code) out["exit_code"] = *command.exit_code;
  if (command.end) out["end"] = bridge::kept_end(*command.end);
  (void)command.record.write(out, {command.output.end(), 0});
}

void ShellSession::save_console() {
  if (record_.keep() == nullptr) return;
  json::Value out{{"session", handle->id}, {"count", console_count_}, {"entries", json::Value::array()}};
  for (const ConsoleEntry& entry : console_) out["entries"].push_back({entry.ps1, entry.command, entry.output});
  if (console_record_.keep() == nullptr) console_record_ = Keep::make("shell-console", out);
  else (void)console_record_.write(out, {});
}

void ShellSession::forget_kept() {
  record_.erase();
  console_record_.erase();
  retired_.clear();
}

void ShellSession::restore(LeftParts parts) {
  const json::Value body = parts.session.body;
  record_ = std::move(parts.session.record);
  screen_.keep_in(record_, 0, parts.session.ends.first);
  created_ns = number(body, "created_ns");
  no_change_timeout = static_cast<double>(number(body, "no_change_timeout_ms")) / 1000;
  line_dirty_ = json::flag_of(body, "line_dirty");
  typed_ = unhex(json::text_of(body, "typed"));
  typing_ = json::flag_of(body, "typing");
  stood_still_ = microseconds(std::max<std::int64_t>(number(body, "stood_still_us"), 0));
  if (const auto since = json::number_of(body, "held_since_ns")) held_since_ = steady_of(*since);
  console_count_ = number(body, "console_count");

  const std::int64_t current = json::number_of(body, "current").value_or(kNoCommand);
  std::map<std::int64_t, CommandPtr> commands;
  for (Keep::Left& left : parts.commands) {
    const json::Value& was = left.body;
    ShellExecParams params{.command = json::text_of(was, "command"),
                           .exec_dir = json::text_of(was, "exec_dir"),
                           .strict = json::flag_of(was, "strict"),
                           .preserve_symlinks = json::flag_of(was, "preserve_symlinks")};
    if (const auto most = json::number_of(was, "hard_timeout_ms")) params.hard_timeout = static_cast<double>(*most) / 1000;
    auto share = budget_->share_of(params.command.size());
    auto command = std::make_shared<ShellCommand>(launcher_.executor(), std::move(params), budget_, config_.stream_cap_bytes);
    if (share) command->text_share = std::move(*share);
    const std::int64_t name = left.record.index();
    command->record = std::move(left.record);
    command->output.keep_in(command->record, 0, name == current ? parts.session.ends.second : left.ends.first);
    command->ps1 = json::text_of(was, "ps1");
    command->dir_missing = json::flag_of(was, "dir_missing");
    command->begun = steady_of(number(was, "begun_ns"));
    command->stood_before = microseconds(std::max<std::int64_t>(number(was, "stood_before_us"), 0));
    command->ending = status_of(json::text_of(was, "ending"));
    command->started = name == current || json::flag_of(was, "started");
    command->finished = true;  // those that are not, the session names below
    command->shell_exited = json::flag_of(was, "shell_exited");
    command->failure = json::text_of(was, "failure");
    command->status = status_of(json::text_of(was, "status")).value_or(ShellStatus::terminated);
    if (const auto code = json::number_of(was, "exit_code")) command->exit_code = static_cast<int>(*code);
    if (was.contains("end")) command->end = bridge::end_from(was["end"]);
    commands.emplace(name, std::move(command));
  }
  const auto find = [&](std::int64_t name) {
    const auto it = commands.find(name);
    return it == commands.end() ? nullptr : it->second;
  };
  const auto unfinished = [&](std::int64_t name, bool started) {
    CommandPtr command = find(name);
    if (!command) return command;
    command->finished = false;
    command->started = started;
    command->status = ShellStatus::running;
    command->exit_code.reset();
    if (!command->ending) command->end.reset();
    return command;
  };
  latest_ = find(json::number_of(body, "latest").value_or(kNoCommand));
  current_ = unfinished(current, true);
  feeding_ = unfinished(json::number_of(body, "feeding").value_or(kNoCommand), false);
  if (const auto queue = body.find("queue"); queue != body.end() && queue->is_array())
    for (const json::Value& name : *queue)
      if (CommandPtr command = name.is_number_integer() ? unfinished(name.get<std::int64_t>(), false) : nullptr;
          command && command != current_ && command != feeding_ && std::ranges::find(queue_, command) == queue_.end())
        queue_.push_back(std::move(command));

  for (Keep::Left& left : parts.consoles) {
    if (console_record_.keep() != nullptr) break;
    if (const auto entries = left.body.find("entries"); entries != left.body.end() && entries->is_array())
      for (const json::Value& entry : *entries)
        if (entry.is_array() && entry.size() == 3 && std::ranges::all_of(entry, [](const auto& e) { return e.is_string(); }))
          console_.push_back({entry[0].get<std::string>(), entry[1].get<std::string>(), entry[2].get<std::string>()});
    // A command that is not over according to the session is read again.
    for (std::int64_t more = number(left.body, "count") - console_count_; more > 0 && !console_.empty(); --more)
      console_.pop_back();
    console_record_ = std::move(left.record);
  }

  left_exec_ = json::text_of(body, "exec");
  const auto state = std::ranges::find(kStates, json::text_of(body, "state"));
  state_ = left_exec_.empty() || state == std::end(kStates) ? State::dead : static_cast<State>(state - std::begin(kStates));
  // These two must agree, whatever the file says.
  if (state_ == State::feeding && !feeding_) state_ = State::clearing;
  if (state_ == State::running && !current_) state_ = State::clearing;
  if (state_ == State::dead) return save();
  MarkerParser::Memory parser{json::text_of(body, "nonce"), json::text_of(body, "older"), unhex(json::text_of(body, "held"))};
  terminal_ = std::make_shared<Terminal>(launcher_.executor(), std::move(parser), json::text_of(body, "modes"), budget_->share());
  terminal_->exec->id = left_exec_;  // save() before attach() must name it, too
  if (parts.session.landed.empty()) save();
  else take_in(parts.session.landed);
}

}  // namespace caisson::services
