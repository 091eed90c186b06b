#include "agent/routes/tool_probe.h"

#include <algorithm>

#include "agent/http/log.h"
#include "agent/routes/sandbox_info.h"
#include "agent/routes/status.h"
#include "agent/session/bash_service.h"

namespace caisson::routes {
namespace {

constexpr double kProbeSeconds = 20;

task<ToolInventory> run_probe(session::BashService* bash) {
  session::BashService::CreateParams create;
  CO_TRY_ASSIGN(auto opened, co_await bash->create(std::move(create)));
  session::BashExecParams params;
  params.command = kToolProbe;
  params.hard_timeout = kProbeSeconds;
  auto started = co_await bash->start(opened, std::move(params));
  if (started) co_await session::BashService::wait_end(*started, bridge::deadline_after(kProbeSeconds + 1));
  const Status closed = co_await bash->close(opened, "tool probe is over");
  if (!started) co_return std::unexpected(std::move(started).error());
  if (!closed) log::warn("tool probe: " + closed.error().text());
  const std::string output = (*started)->out.read(0, 64 * 1024);
  co_return parse_tools(output);
}

}  // namespace

task<void> probe_until_ready(Services& services) {
  for (std::chrono::milliseconds pause(200);; pause = std::min<std::chrono::milliseconds>(pause * 2, std::chrono::seconds(10))) {
    services.status->reason = "the first session is being started";
    auto tools = co_await run_probe(services.bash);
    if (tools) {
      services.sandbox->set_tools(std::move(*tools));
      services.status->ready = true;
      co_return Status{};
    }
    services.status->reason = "sessions cannot be started";  // why is for the log: this answer needs no key
    log::error("cannot start a session: " + tools.error().text());
    co_await sleep_for(pause);
  }
}

}  // namespace caisson::routes
