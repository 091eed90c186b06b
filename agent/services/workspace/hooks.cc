#include "agent/services/workspace/hooks.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "agent/services/program/run_once.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMaxEnvCommand = 32 * 1024;  // fits into one message to the launcher
constexpr std::chrono::seconds kEndBudget{20};     // a client waits meanwhile for the end of its workspace
constexpr std::size_t kSaid = 200;                 // of a failed hook's output

struct EnvRow {
  const Variable& variable;
  std::string_view event;
};
constexpr EnvRow kEnvHooks[] = {{variable("RUN_HOOK_INIT"), Hooks::kInit},
                                {variable("RUN_HOOK_PRE_SERVICES"), Hooks::kPreServices},
                                {variable("RUN_HOOK_POST_READY"), Hooks::kPostReady}};

}  // namespace

// The running hooks of one priority, and their failures.
struct Hooks::Turn {
  explicit Turn(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::size_t running = 0;
  std::string failed;
  std::map<std::string, bridge::End> ends;
  bridge::Notifier changed;
};

Hooks::Hooks(bridge::LauncherClient& launcher, Config config) : launcher_(launcher), config_(std::move(config)) {}

Status Hooks::add(Hook hook) {
  const auto known = hooks_.find(hook.name);
  if (known != hooks_.end() && known->second.source == "env")
    return fail(Code::permission_denied, "hook " + quote(hook.name) + " is set by the environment");
  if (known == hooks_.end() && hooks_.size() >= kMost)
    return fail(Code::limit, "more than " + std::to_string(kMost) + " hooks; remove one first");
  save(hook);
  std::string name = hook.name;
  hooks_.insert_or_assign(std::move(name), std::move(hook));
  return {};
}

void Hooks::save(const Hook& hook) {
  if (hook.source != "api") return;
  json::Value body{{"workspace", config_.workspace},
                   {"name", hook.name},
                   {"event", hook.event},
                   {"command", hook.command},
                   {"timeout_ms", static_cast<std::int64_t>(std::clamp(hook.timeout, 0.0, 1e6) * 1000)},
                   {"priority", hook.priority}};
  if (hook.end) body["end"] = bridge::kept_end(*hook.end);
  Keep::Record& record = kept_[hook.name];
  if (record.keep() == nullptr) record = Keep::make("hook", body);
  else (void)record.write(body, {});  // without room the older body stays
}

void Hooks::restore(Keep::Left left) {
  const json::Value& body = left.body;
  Hook hook{.name = json::text_of(body, "name"),
            .event = json::text_of(body, "event"),
            .command = json::text_of(body, "command"),
            .timeout = static_cast<double>(json::number_of(body, "timeout_ms").value_or(0)) / 1000,
            .priority = json::number_of(body, "priority").value_or(100)};
  if (body.contains("end")) hook.end = bridge::end_from(body["end"]);
  if (hook.name.empty() || hook.event != kShutdown || hooks_.contains(hook.name)) return;  // the operator's hook has precedence
  kept_[hook.name] = std::move(left.record);
  (void)add(std::move(hook));  // beyond the limit it is dropped
}

Status Hooks::remove(const std::string& name) {
  const auto known = hooks_.find(name);
  if (known == hooks_.end()) return fail(Code::not_found, "no hook " + quote(name));
  if (known->second.source == "env")
    return fail(Code::permission_denied, "hook " + quote(name) + " is set by the environment and cannot be removed");
  hooks_.erase(known);
  kept_.erase(name);
  return {};
}

std::vector<Hook> Hooks::list(std::string_view event) const {
  std::vector<Hook> out;
  for (const auto& [name, hook] : hooks_)
    if (event.empty() || hook.event == event) out.push_back(hook);
  std::ranges::sort(out, {}, [](const Hook& h) { return std::tie(h.priority, h.name); });
  return out;
}

std::string Hooks::failures() const {
  std::string out;
  for (const auto& [event, what] : failed_) out.append(out.empty() ? "" : "; ").append(what);
  return out;
}

void Hooks::serve_workspace(std::string name) {
  config_.workspace = std::move(name);
  hooks_.clear();
  kept_.clear();
  failed_.clear();
}

task<void> Hooks::run_one(bridge::LauncherClient& launcher, Config config, Hook hook, bridge::Clock::time_point deadline,
                          std::shared_ptr<Turn> turn) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - bridge::Clock::now());
  const auto own = std::chrono::milliseconds(static_cast<std::int64_t>(hook.timeout * 1000));
  OneRun run{.domain = "bash", .workspace = config.workspace, .label = "hook " + hook.name};
  run.argv = {"bash", "-c", std::move(hook.command)};
  // The operator's hook runs programs of the system only, never those of a home that clients write to. A client's hook is its own
  // affair.
  if (hook.source == "env") run.argv.insert(run.argv.begin(), {"/usr/bin/env", kSystemPath});
  run.cwd = config.directory.empty() ? launcher.greeting().workspace : config.directory;
  run.limit = std::max(std::min(own, left), std::chrono::milliseconds(1));
  std::string why;
  if (left.count() <= 0) {
    why = "there was no time left for it";
  } else if (auto done = co_await run_once(launcher, std::move(run)); !done) {
    why = done.error().text();
  } else {
    turn->ends[hook.name] = done->exit.end;
    why = failure_of(done->exit);
    if (!why.empty() && !done->err.empty()) why += " and wrote " + quote(done->err, kSaid);
  }
  if (!why.empty()) turn->failed.append(turn->failed.empty() ? "" : "; ").append("hook " + hook.name + ": " + why);
  --turn->running;
  turn->changed.notify_all();
  co_return Status{};
}

task<void> Hooks::run(std::string event, bridge::Clock::time_point deadline) {
  std::vector<Hook> hooks = list(event);
  std::string failed;
  for (std::size_t at = 0; at < hooks.size();) {
    auto turn = std::make_shared<Turn>(launcher_.executor());
    const std::int64_t priority = hooks[at].priority;
    for (; at < hooks.size() && hooks[at].priority == priority; ++at) {
      ++turn->running;
      spawn(launcher_.executor(), "hook", run_one(launcher_, config_, std::move(hooks[at]), deadline, turn));
    }
    // Each ends in time: the launcher enforces its limit.
    while (turn->running > 0) (void)co_await turn->changed.wait_until(bridge::no_deadline());
    for (auto& [name, end] : turn->ends)
      if (const auto known = hooks_.find(name); known != hooks_.end()) {
        known->second.end = std::move(end);
        save(known->second);
      }
    if (!turn->failed.empty()) failed.append(failed.empty() ? "" : "; ").append(turn->failed);
  }
  failed_.erase(event);
  if (failed.empty()) co_return Status{};
  failed_[event] = failed;
  co_return fail(Code::io, failed);
}

task<void> Hooks::end() { co_return co_await run(std::string(kShutdown), bridge::Clock::now() + kEndBudget); }

Result<std::vector<Hook>> hooks_from_env() {
  TRY_ASSIGN(const std::int64_t seconds, number_from_env(variable("CAISSON_HOOK_SECONDS")));
  std::vector<Hook> out;
  for (const EnvRow& row : kEnvHooks) {
    std::string command = text_from_env(row.variable);
    if (command.empty()) continue;
    std::string name(row.variable.name);
    if (command.size() > kMaxEnvCommand)
      return fail(Code::limit, name + " is longer than " + std::to_string(kMaxEnvCommand) + " bytes");
    out.push_back({std::move(name), std::string(row.event), std::move(command), static_cast<double>(seconds), 100, "env"});
  }
  return out;
}

}  // namespace caisson::services
