#include "agent/services/shell/bash_session.h"

#include <algorithm>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/directory.h"
#include "agent/services/shell/shell_words.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr double kLongestTimeout = 7.0 * 24 * 3600;  // the launcher's own bound

// A line before the command. bash -c reads and runs a script line by line, so aliases of the snapshot apply in the command.
std::string prologue(const BashSession& session) {
  return session.snapshot_path.empty() ? "" : ". " + single_quote(session.snapshot_path) + "\n";
}

}  // namespace

void BashSession::touch() {
  last_used = bridge::Clock::now();
  last_used_ns = sys::realtime_ns();
}

void BashSession::save() {
  if (!handle || closed) return;
  const json::Value body{{"session", handle->id},          {"id", id},
                         {"working_dir", working_dir},     {"snapshot_path", snapshot_path},
                         {"created_ns", created_ns},       {"last_used_ns", last_used_ns},
                         {"command_count", command_count}, {"implicit", implicit}};
  if (record.keep() == nullptr) record = Keep::make("bash", body);
  else (void)record.write(body, {});  // without room the older body stays
}

bool BashSession::busy() const { return starting > 0 || current() != nullptr; }

std::shared_ptr<Command> BashSession::current() const {
  for (auto it = commands.rbegin(); it != commands.rend(); ++it)
    if ((*it)->running()) return *it;
  return nullptr;
}

std::shared_ptr<Command> BashSession::find(const std::string& command_id) const {
  const auto it = std::ranges::find(commands, command_id, [](const auto& command) { return command->id; });
  return it == commands.end() ? nullptr : *it;
}

void BashSession::remember(std::shared_ptr<Command> command, std::size_t most_finished) {
  commands.push_back(std::move(command));
  ++command_count;
  const auto finished = [](const auto& c) { return !c->running(); };
  auto count = static_cast<std::size_t>(std::ranges::count_if(commands, finished));
  for (auto it = commands.begin(); count > most_finished && it != commands.end();) {
    if ((*it)->running()) {
      ++it;
      continue;
    }
    (*it)->release();  // background children of a forgotten command lose their pipe, as after a closed terminal
    it = commands.erase(it);
    --count;
  }
}

Result<BashLaunch> plan_bash(const BashSession& session, const BashExecParams& params) {
  if (params.command.contains('\0')) return fail(Code::invalid_argument, "the command contains a NUL byte");
  BashLaunch launch;
  bridge::ExecRequest& request = launch.request;
  request.cwd = absolute_dir(session.working_dir, params.exec_dir.value_or(""));
  if (request.cwd.contains('\0')) return fail(Code::invalid_argument, "exec_dir contains a NUL byte");
  for (const auto& [name, value] : params.env) {
    const bool usable = !name.empty() && !name.contains('=') && !name.contains('\0') && !(value && value->contains('\0'));
    if (!usable) return fail(Code::invalid_argument, "env: " + quote(name) + " cannot be set");
  }
  request.env = params.env;
  if (params.hard_timeout) {
    const double seconds = std::clamp(*params.hard_timeout, 0.001, kLongestTimeout);
    request.hard_timeout_ms = static_cast<std::int64_t>(seconds * 1000);
  }
  const std::string before = prologue(session);
  request.argv = {"bash", "-c", before + params.command};
  if (bridge::LauncherClient::fits(session.handle->id, request)) return launch;

  // A command larger than an IPC message goes through stdin. head -c reads exactly as many bytes as it is told, so the rest of
  // the pipe is the command's own input.
  request.argv[2] = before + "eval \"$(head -c " + std::to_string(params.command.size()) + ")\"";
  launch.preamble = params.command;
  if (!bridge::LauncherClient::fits(session.handle->id, request))
    return fail(Code::limit, "the environment of the command is too large");
  return launch;
}

}  // namespace caisson::services
