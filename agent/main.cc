// caisson-agent: the unprivileged HTTP server. Started by the launcher, which has confined it already, with fd 3 as its
// only way to ask for sessions. Exit status: 0 stopped, 2 settings, 5 port taken, 10 anything else (as `caisson --help`).
#include <csignal>
#include <string>

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>

#include "agent/bridge/launcher_client.h"
#include "agent/http/lane.h"
#include "agent/http/log.h"
#include "agent/http/server.h"
#include "agent/routes/app.h"
#include "agent/routes/sandbox_info.h"
#include "agent/routes/status.h"
#include "agent/routes/table.h"
#include "agent/routes/tool_probe.h"
#include "agent/seal.h"
#include "agent/services/common/config.h"
#include "agent/services/workspace/workspaces.h"
#include "agent/settings.h"

namespace caisson {
namespace {

constexpr int kLauncherFd = 3;
constexpr std::chrono::seconds kGrace{5}, kAnswering{1};

// At once, without destructors: coroutines of requests may still hold references into main's frame.
[[noreturn]] void leave(int status) { ::_exit(status); }

[[noreturn]] void die(const Error& error) {
  log::error(error.text());
  leave(code_exit_status(error.code));
}

// Before anything is read from outside. Not dumpable: no process of the same uid may read the key from our memory.
Status harden() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("prctl PR_SET_DUMPABLE");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("prctl PR_SET_NO_NEW_PRIVS");
  return {};
}

// What is large goes back to the kernel when it ends. Without this the allocator, once it has seen something large end, takes the
// next from its heap, where what is small and stays keeps the holes between: those count against the limit as well.
void settle_memory() { ::mallopt(M_MMAP_THRESHOLD, 256 * 1024); }

// Connections, pipes and terminals count against the soft limit, which some engines leave at 1024. Not fatal.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log::warn("the limit of open files stays low");
}

Result<Fd> launcher_socket() {
  if (::fcntl(kLauncherFd, F_SETFD, FD_CLOEXEC) != 0)
    return fail(Code::invalid_argument, "descriptor 3 is not open: caisson-agent is started by caisson-launcher");
  return Fd(kLauncherFd);
}

void launcher_gone(const Error& error) {
  log::error("the launcher is gone: " + error.text());
  leave(code_exit_status(Code::io));
}

// Everything that lives as long as the process.
struct Agent {
  Agent(asio::io_context& io, const Settings& settings, services::Config config, Fd launcher_fd)
      : launcher(io.get_executor(), std::move(launcher_fd), launcher_gone),
        workspaces(launcher, std::move(config)),
        sandbox({.user = settings.user, .workspace = settings.workspace, .timezone = settings.timezone, .port = settings.port}),
        services{.status = &status,
                 .sandbox = &sandbox,
                 .launcher = &launcher,
                 .workspaces = &workspaces,
                 .workspace = workspaces.standard().get()},
        app(services,
            {.api_key = settings.api_key,
             .auth_off = settings.auth_off,
             .allow_origin = settings.allow_origin,
             .allow_host = settings.allow_host},
            routes::all_routes()),
        server(io, app) {}
  bridge::LauncherClient launcher;
  services::Workspaces workspaces;
  routes::AgentStatus status;
  routes::SandboxInfo sandbox;
  routes::Services services;
  routes::App app;
  http::Server server;
};

// What the operator's environment names. A failure is said and does not keep the server from its work: no wall depends on it.
asio::awaitable<void> run_hooks(Agent& agent, const Settings& settings, std::string_view event) {
  if (settings.restarted) co_return;
  services::Hooks& hooks = agent.workspaces.standard()->hooks;
  const Status done = co_await hooks.run(std::string(event), bridge::no_deadline());
  if (!done) log::error(done.error().text());
}

task<void> go_on(services::Workspaces& workspaces) {
  CO_TRY(co_await workspaces.look());
  CO_TRY(co_await workspaces.wake(workspaces.standard()));  // what is asked of it below would wait
  co_return co_await workspaces.take_up();
}

// The first message to the launcher must be hello, so no request is accepted before its answer.
task<void> serve(Agent& agent, const Settings& settings) {
  auto greeting = co_await agent.launcher.hello(services::Keep::file_bytes());
  if (!greeting) die(std::move(greeting).error().wrap("greet the launcher"));
  agent.sandbox.set_places(greeting->home, settings.workspace.empty() ? greeting->workspace : settings.workspace);
  // An agent that cannot go on with what is there serves nothing: the next one may.
  if (Status done = co_await go_on(agent.workspaces); !done) die(std::move(done).error().wrap("go on from the agent before"));
  co_await run_hooks(agent, settings, services::Hooks::kInit);
  co_await run_hooks(agent, settings, services::Hooks::kPreServices);
  agent.server.start();
  CO_TRY(co_await routes::probe_until_ready(agent.services));
  co_await run_hooks(agent, settings, services::Hooks::kPostReady);
  services::JupyterService& jupyter = agent.workspaces.standard()->jupyter;
  if (jupyter.config().prepare_at_start) CO_TRY(co_await jupyter.prepare());
  co_return Status{};
}

// What still runs when most of the grace is over ends while its request can be answered, and says why.
task<void> end_sessions(Agent& agent, std::vector<std::shared_ptr<bridge::SessionHandle>> sessions) {
  co_await sleep_for(kGrace - kAnswering);
  for (const auto& session : sessions) CO_TRY(co_await agent.launcher.session_destroy(session, "shutdown"));
  co_return Status{};
}

task<void> stop_on_signal(Agent& agent, const Settings& settings) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGTERM, SIGINT);
  auto [error, number] = co_await signals.async_wait(as_values);
  if (error) co_return asio_error("wait for signals", error);
  log::info("stopping");
  agent.status = {.ready = false, .reason = "the server is stopping"};
  spawn(agent.launcher.executor(), "last sessions", end_sessions(agent, agent.launcher.living()));  // hooks have theirs later
  using asio::experimental::awaitable_operators::operator&&;
  auto both = agent.server.stop(kGrace) && agent.workspaces.shut_down(bridge::deadline_after(settings.shutdown_seconds));
  co_await std::move(both);
  leave(0);
}

Status run() {
  TRY(harden());
  settle_memory();
  raise_descriptor_limit();
  TRY_ASSIGN(const Settings settings, settings_from_env());
  TRY_ASSIGN(services::Config config, services::config_from_env());
  TRY_ASSIGN(std::vector<services::Hook> hooks, services::hooks_from_env());
  TRY_ASSIGN(Fd launcher_fd, launcher_socket());
  asio::io_context io(1);
  Agent agent(io, settings, std::move(config), std::move(launcher_fd));
  for (services::Hook& hook : hooks) TRY(agent.workspaces.standard()->hooks.add(std::move(hook)));
  TRY_ASSIGN(const unsigned short port, agent.server.listen(settings.bind, settings.port));
  log::info("caisson-agent " CAISSON_VERSION " listens on " + settings.bind + " port " + std::to_string(port) +
            (settings.auth_off ? ", WITHOUT authentication (CAISSON_AUTH=none)" : ""));
  TRY(seal());
  spawn(io.get_executor(), "signals", stop_on_signal(agent, settings));
  spawn(io.get_executor(), "start", serve(agent, settings));
  http::run(io);
  return {};
}

}  // namespace
}  // namespace caisson

int main() {
  try {
    if (const caisson::Status status = caisson::run(); !status) caisson::die(status.error());
  } catch (const std::exception& e) {
    caisson::log::error(std::string("fatal: ") + e.what());
    return 11;
  }
  return 0;
}
