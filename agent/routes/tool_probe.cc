#include "agent/routes/tool_probe.h"

#include <algorithm>

#include "agent/http/log.h"
#include "agent/routes/sandbox_info.h"
#include "agent/routes/status.h"
#include "agent/services/program/run_once.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

constexpr int kProbeSeconds = 20;

task<void> try_session(services::BashService& bash) {
  services::BashService::CreateParams create;
  CO_TRY_ASSIGN(auto opened, co_await bash.create(std::move(create)));
  services::BashExecParams params;
  params.command = ":";
  params.hard_timeout = kProbeSeconds;
  auto started = co_await bash.start(opened, std::move(params));
  if (started) co_await services::BashService::wait_end(*started, bridge::deadline_after(kProbeSeconds + 1));
  const Status closed = co_await bash.close(opened, "tool probe is over");
  if (!started) co_return std::unexpected(std::move(started).error());
  if (!closed) log::warn("tool probe: " + closed.error().text());
  co_return Status{};
}

task<ToolInventory> ask_tools(bridge::LauncherClient& launcher) {
  services::OneRun run{.domain = "bash", .workspace = "default", .label = "tools", .argv = {"/bin/sh", "-c", kToolProbe}};
  run.limit = std::chrono::seconds(kProbeSeconds);
  CO_TRY_ASSIGN(const std::string output, co_await services::ask_system(launcher, std::move(run)));
  co_return parse_tools(output);
}

}  // namespace

task<void> probe_until_ready(Services& services) {
  for (std::chrono::milliseconds pause(200);; pause = std::min<std::chrono::milliseconds>(pause * 2, std::chrono::seconds(10))) {
    services.status->sessions.why = "the first session is being started";
    const Status made = co_await try_session(services.workspace->bash);
    if (made) {
      if (auto tools = co_await ask_tools(*services.launcher)) services.sandbox->set_tools(std::move(*tools));
      else log::warn("GET /v1/sandbox names no tools: " + tools.error().text());
      services.status->sessions = {.name = "sessions", .passed = true};
      co_return Status{};
    }
    services.status->sessions.why = "sessions cannot be started";  // the reason goes to the log, because this answer needs no key
    log::error("cannot start a session: " + made.error().text());
    co_await sleep_for(pause);
  }
}

}  // namespace caisson::routes
