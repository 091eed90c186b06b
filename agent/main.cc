// caisson-agent: the unprivileged HTTP server. The launcher starts it already confined; fd 3 is its only way to ask for sessions.
// Exit status: 0 stopped, 2 settings, 5 port taken, 10 anything else (as `caisson --help`).
#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>

#include "agent/auth/certificate.h"
#include "agent/bridge/courier_client.h"
#include "agent/bridge/launcher_client.h"
#include "agent/bridge/openings.h"
#include "agent/http/lane.h"
#include "agent/http/log.h"
#include "agent/http/server.h"
#include "agent/metrics/registry.h"
#include "agent/proxy/proxy.h"
#include "agent/routes/app.h"
#include "agent/routes/inside_api.h"
#include "agent/routes/sandbox_info.h"
#include "agent/routes/status.h"
#include "agent/routes/table.h"
#include "agent/routes/tool_probe.h"
#include "agent/seal.h"
#include "agent/services/coding/coding_settings.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/workspace/workspaces.h"
#include "agent/settings.h"
#include "agent/traces/tracer.h"

namespace caisson {
namespace {

constexpr int kCourierFd = 0, kLauncherFd = 3;
// The launcher kills the agent 6 s after the time that shutdown hooks have (launcher/pid1/agent_process.cc). Half a second of it
// is for load balancers, 5 s are for requests under way, and most of what is left is for their spans.
constexpr std::chrono::seconds kGrace{5}, kAnswering{1};
constexpr std::chrono::milliseconds kDraining{500}, kLastSpans{2'000};

// Exits without destructors: coroutines of requests may still hold references into main's frame.
[[noreturn]] void leave(int status) { ::_exit(status); }

[[noreturn]] void die(const Error& error) {
  log::error(error.text());
  leave(code_exit_status(error.code));
}

// Called before any outside input is read. Not dumpable: no process of the same uid may read the key from our memory.
Status harden() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("prctl PR_SET_DUMPABLE");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("prctl PR_SET_NO_NEW_PRIVS");
  return {};
}

// Large blocks go back to the kernel when they are freed. Without this, malloc raises its threshold after the first large free
// and takes the next large block from its heap, where small blocks that stay pin the holes, and the holes count against the
// limit.
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

// With what the operator wants of a courier, which is not there otherwise.
auth::GateSettings with_courier(auth::GateSettings auth, const Settings& settings, bridge::CourierClient& courier) {
  if (!settings.jwks_url.empty()) auth.jwt.remote.ask = [&courier] { (void)courier.fetch_keys(); };  // lost: asked again later
  return auth;
}

void count_spans(std::string_view outcome, std::uint32_t spans) {
  metrics::registry().add(metrics::Id::trace_spans, {outcome}, spans);
}

// Counts what the courier reports, and logs a fault when it is another than before.
auto report_of_spans() {
  return [told = std::string()](std::uint32_t spans, const Status& posted) mutable {
    count_spans(posted ? "posted" : "lost", spans);
    const std::string fault = posted ? "" : posted.error().text();
    if (std::exchange(told, fault) != fault && !posted) log::warn("spans are lost: " + fault);
  };
}

traces::TracerSettings tracing(const Settings& settings, bridge::CourierClient& courier) {
  return {.service = settings.service_name,
          .post = [&courier](const std::string& body, std::uint32_t spans) { return courier.post_spans(body, spans); },
          .dropped = [](std::uint32_t spans) { count_spans("dropped", spans); }};
}

// Everything that lives as long as the process.
struct Agent {
  Agent(asio::io_context& io, const Settings& settings, services::Config config, Fd launcher_fd,
        std::function<http::TlsContext()> tls)
      : launcher(io.get_executor(), std::move(launcher_fd), launcher_gone),
        courier(io.get_executor(), Fd(kCourierFd)),
        tracer(io.get_executor(), tracing(settings, courier)),
        workspaces(launcher, std::move(config)),
        proxy(launcher, std::chrono::seconds(settings.preview_seconds)),
        openings(launcher),
        sandbox({.user = settings.user, .workspace = settings.workspace, .timezone = settings.timezone, .port = settings.port}),
        services{.status = &status,
                 .sandbox = &sandbox,
                 .launcher = &launcher,
                 .workspaces = &workspaces,
                 .proxy = &proxy,
                 .openings = &openings,
                 .workspace = workspaces.standard().get()},
        app(services,
            {.auth = with_courier(settings.auth, settings, courier),
             .allow_origin = settings.allow_origin,
             .allow_host = settings.allow_host,
             .preview_hosts = settings.preview_hosts,
             .requests_per_second = static_cast<double>(settings.requests_per_second)},
            routes::all_routes()),
        server(io, app, {},
               {settings.trusted_proxies, settings.access_log ? STDERR_FILENO : -1, std::move(tls),
                settings.traced ? &tracer : nullptr}),
        inside(launcher, openings, *services.gate, server) {
    services.server = &server;
    courier.on_spans = report_of_spans();
    courier.on_keys = [this](Result<std::string> set) { services.gate->take_keys(std::move(set)); };
    workspaces.on_end = [this](const std::string& name) {
      services.gate->workspace_ended(name);
      inside.workspace_ended(name);
    };
    workspaces.on_policies = [this] { openings.policies_changed(); };
    launcher.variables_of = [this](std::shared_ptr<bridge::SessionHandle> session) {
      return inside.variables(std::move(session));
    };
    workspaces.on_stop = [this](const std::string& name) { proxy.pool.forget(name); };
  }
  bridge::LauncherClient launcher;
  bridge::CourierClient courier;
  traces::Tracer tracer;
  services::Workspaces workspaces;
  proxy::Proxy proxy;
  bridge::Openings openings;
  routes::AgentStatus status;
  routes::SandboxInfo sandbox;
  routes::Services services;
  routes::App app;
  http::Server server;
  routes::InsideApi inside;
};

// Runs the hooks that the operator's environment names. A failure is logged and does not stop the server: no wall depends on a
// hook.
asio::awaitable<void> run_hooks(Agent& agent, const Settings& settings, std::string_view event) {
  if (settings.restarted) co_return;
  services::Hooks& hooks = agent.workspaces.standard()->hooks;
  const Status done = co_await hooks.run(std::string(event), bridge::no_deadline());
  if (!done) log::error(done.error().text());
}

task<void> take_over(services::Workspaces& workspaces) {
  CO_TRY(co_await workspaces.look());
  CO_TRY(co_await workspaces.wake(workspaces.standard()));  // requests to it below would wait
  co_return co_await workspaces.take_up();
}

// The first message to the launcher must be hello, so no request is accepted before its answer.
task<void> serve(Agent& agent, const Settings& settings) {
  auto greeting = co_await agent.launcher.hello(services::Keep::file_bytes());
  if (!greeting) die(std::move(greeting).error().wrap("greet the launcher"));
  agent.status.launcher = {.name = "launcher", .passed = true};
  agent.sandbox.set_places(greeting->home, settings.workspace.empty() ? greeting->workspace : settings.workspace);
  // An agent that cannot take over the sessions serves nothing: the next one may succeed.
  if (Status done = co_await take_over(agent.workspaces); !done)
    die(std::move(done).error().wrap("take over from the previous agent"));
  co_await run_hooks(agent, settings, services::Hooks::kInit);
  co_await run_hooks(agent, settings, services::Hooks::kPreServices);
  agent.server.start();
  CO_TRY(co_await routes::probe_until_ready(agent.services));
  co_await run_hooks(agent, settings, services::Hooks::kPostReady);
  services::JupyterService& jupyter = agent.workspaces.standard()->jupyter;
  if (jupyter.config().prepare_at_start) CO_TRY(co_await jupyter.prepare());
  co_return Status{};
}

// Ends what still runs when most of the grace is over, early enough for its request to be answered with the reason.
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
  agent.status.serving = {.name = "serving", .passed = false, .why = "the server is stopping"};
  agent.server.drain();
  const std::chrono::milliseconds whole = std::chrono::seconds(settings.shutdown_seconds) + kDraining;
  const std::chrono::milliseconds draining = std::min(settings.drain, whole);
  const std::chrono::duration<double> hooks_have = whole - draining;
  co_await sleep_for(draining);
  spawn(agent.launcher.executor(), "last sessions",
        end_sessions(agent, agent.launcher.living()));  // the hooks' sessions are made later
  using asio::experimental::awaitable_operators::operator&&;
  auto both = agent.server.stop(kGrace) && agent.workspaces.shut_down(bridge::deadline_after(hooks_have.count()));
  co_await std::move(both);
  agent.server.flush_log();
  agent.tracer.flush();
  co_await agent.courier.settle(kLastSpans);
  leave(0);
}

Status add_coding(services::Config& config) {
  TRY_ASSIGN(services::CodingSettings coding, services::coding_from_env());
  config.program_variables = std::move(coding.environments);
  config.coding = std::make_shared<const services::CodingSettings>(std::move(coding));
  return {};
}

// Null: connections are plain.
Result<std::function<http::TlsContext()>> tls_from(const Settings& settings) {
  if (settings.tls_certificate.empty()) return nullptr;
  TRY_ASSIGN(auto certificate, auth::Certificate::open(settings.tls_certificate, settings.tls_key));
  return [certificate = std::move(certificate)] mutable { return certificate.current(auth::Certificate::Clock::now()); };
}

Status run() {
  TRY(harden());
  settle_memory();
  raise_descriptor_limit();
  TRY_ASSIGN(const Settings settings, settings_from_env());
  TRY_ASSIGN(services::Config config, services::config_from_env());
  TRY(add_coding(config));
  TRY_ASSIGN(std::vector<services::Hook> hooks, services::hooks_from_env());
  TRY_ASSIGN(std::function<http::TlsContext()> tls, tls_from(settings));
  // The launcher kills the agent when this socket closes, so a wrong setting is reported before the socket is taken.
  TRY_ASSIGN(Fd launcher_fd, launcher_socket());
  asio::io_context io(1);
  Agent agent(io, settings, std::move(config), std::move(launcher_fd), std::move(tls));
  for (services::Hook& hook : hooks) TRY(agent.workspaces.standard()->hooks.add(std::move(hook)));
  TRY_ASSIGN(const unsigned short port, agent.server.listen(settings.bind, settings.port));
  log::info("caisson-agent " CAISSON_VERSION " listens on " + settings.bind + " port " + std::to_string(port) +
            (settings.tls_key.empty() ? "" : " (TLS)") +
            (settings.auth.off ? ", WITHOUT authentication (CAISSON_AUTH=none)" : ""));
  TRY(seal());
  spawn(io.get_executor(), "signals", stop_on_signal(agent, settings));
  if (!settings.jwks_url.empty() || settings.traced) spawn(io.get_executor(), "courier", agent.courier.listen());
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
