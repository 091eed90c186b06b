// GET /metrics: what operators watch, in Prometheus' text format 0.0.4, or as OpenMetrics 1.0 where Accept names that. Counters
// count as things happen (agent/metrics); gauges are measured here, for each answer. It needs the key, because figures of use
// tell what others do.
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/bridge/way_client.h"
#include "agent/http/server.h"
#include "agent/metrics/launcher_names.h"
#include "agent/metrics/registry.h"
#include "agent/routes/status.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspaces.h"
#include "launcher/common/base/word.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

using metrics::Id;
using metrics::Registry;

constexpr std::chrono::seconds kPatience{2};

void gauge(Id id, double value) { metrics::registry().set(id, {}, value); }

// One call of the kernel's asks about all of them: the agent cannot list /proc/self/fd.
double open_descriptors(std::size_t most) {
  constexpr std::size_t kLooked = 65'536;
  std::vector<pollfd> fds(std::min(most, kLooked));
  for (std::size_t i = 0; i < fds.size(); ++i) fds[i] = {.fd = static_cast<int>(i), .events = 0, .revents = 0};
  if (::poll(fds.data(), fds.size(), 0) < 0) return 0;
  return static_cast<double>(std::ranges::count_if(fds, [](const pollfd& fd) { return (fd.revents & POLLNVAL) == 0; }));
}

double seconds_of(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; }

void measure_process(const AgentStatus& status) {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    gauge(Id::process_cpu, seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    gauge(Id::process_peak, static_cast<double>(usage.ru_maxrss) * 1024);
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    gauge(Id::process_max_fds, static_cast<double>(limit.rlim_cur));
    gauge(Id::process_fds, open_descriptors(limit.rlim_cur));
  }
  const auto heap = ::mallinfo2();
  gauge(Id::process_heap, static_cast<double>(heap.uordblks + heap.hblkhd));
  gauge(Id::process_start, std::chrono::duration<double>(status.started.time_since_epoch()).count());
}

void measure_traffic(const Services& services) {
  const http::Server::Load load = services.server->load();
  const http::Budget& kept = services.workspaces->kept();
  Registry& all = metrics::registry();
  gauge(Id::http_connections, static_cast<double>(services.server->connections()));
  all.set(Id::budget_held, {"traffic"}, static_cast<double>(load.held_bytes));
  all.set(Id::budget_limit, {"traffic"}, static_cast<double>(load.held_limit));
  all.set(Id::budget_held, {"kept"}, static_cast<double>(kept.used()));
  all.set(Id::budget_limit, {"kept"}, static_cast<double>(kept.total()));
  gauge(Id::lane_waiting, static_cast<double>(load.lane_waiting));
  gauge(Id::lane_turns, static_cast<double>(load.lane_turns));
}

void measure_launcher(const Services& services) {
  const bridge::LauncherClient& launcher = *services.launcher;
  const std::string& tier = launcher.greeting().tier;
  Registry& all = metrics::registry();
  all.clear(Id::sessions);
  for (const auto& session : launcher.living()) all.add(Id::sessions, {session->domain, tier});
  gauge(Id::launcher_pending, static_cast<double>(launcher.pending()));
  all.clear(Id::build);
  all.set(Id::build, {CAISSON_VERSION, tier}, 1);
}

// All workspaces together: their names are a client's, so they are no labels.
void measure_services(const Services& services) {
  std::size_t bash = 0, shell = 0, code = 0, prepared = 0, jupyter = 0, kernels = 0, watches = 0, paused = 0;
  const std::vector<services::WorkspacePtr> known = services.workspaces->known();
  for (const services::WorkspacePtr& workspace : known) {
    bash += workspace->bash.sessions().size();
    shell += workspace->shell.sessions().size();
    code += workspace->code.sessions();
    prepared += workspace->code.prepared();
    watches += workspace->watches.all().size();
    paused += workspace->paused ? 1 : 0;
    for (const auto& session : workspace->jupyter.sessions()) {
      ++jupyter;
      kernels += session->kernel ? 1 : 0;
    }
  }
  Registry& all = metrics::registry();
  for (const auto& [name, number] : {std::pair("bash", bash), std::pair("shell", shell), std::pair("code", code),
                                     std::pair("prepared", prepared), std::pair("jupyter", jupyter)})
    all.set(Id::service_sessions, {name}, static_cast<double>(number));
  gauge(Id::kernels, static_cast<double>(kernels));
  gauge(Id::watches, static_cast<double>(watches));
  all.set(Id::workspaces, {"active"}, static_cast<double>(known.size() - paused));
  all.set(Id::workspaces, {"paused"}, static_cast<double>(paused));
}

bool wants_openmetrics(const http::Request& request) {
  return request.header("accept").value_or("").find("application/openmetrics-text") != std::string_view::npos;
}

// Figures that only the launcher has.
task<void> ask_launcher(bridge::LauncherClient* launcher) {
  CO_TRY_ASSIGN(const auto denied, co_await launcher->denied());
  std::map<std::string_view, double> kinds;
  for (const metrics::DenialKind& row : metrics::kDenialKinds) kinds[row.kind] = 0;
  for (const auto& [name, count] : denied) kinds[metrics::denial_kind(name)] += static_cast<double>(count);
  for (const auto& [kind, count] : kinds) metrics::registry().set(Id::denials, {kind}, count);
  struct Use {
    double memory = 0, processes = 0;
  };
  std::map<std::string, Use> domains;
  std::string after;
  do {
    CO_TRY_ASSIGN(const json::Value page, co_await launcher->session_list(std::move(after)));
    after = json::text_of(page, "next");
    const auto sessions = page.find("sessions");
    if (sessions == page.end() || !sessions->is_array()) co_return fail(Code::io, "session_list: no list from the launcher");
    for (const json::Value& session : *sessions) {
      Use& use = domains[json::text_of(session, "domain")];
      use.memory += static_cast<double>(json::number_of(session, "memory_bytes").value_or(0));
      use.processes += static_cast<double>(json::number_of(session, "processes").value_or(0));
    }
  } while (!after.empty());
  for (const auto& [domain, use] : domains) {
    metrics::registry().set(Id::sessions_memory, {domain}, use.memory);
    metrics::registry().set(Id::sessions_processes, {domain}, use.processes);
  }
  co_return Status{};
}

// What went out, and what was refused. caisson-gate tells it of all workspaces together, over the line of any one that has a way
// out; where none has one any more the last figures stay.
task<void> ask_way(const Services* services) {
  for (const services::WorkspacePtr& workspace : services->workspaces->known()) {
    auto told = co_await bridge::look_at_way(*services->launcher, workspace->name, way::Op::figures);
    if (!told) continue;
    const json::Value& figures = *told;
    const auto set = [](Id id, std::string_view label, const json::Value& from, std::string_view member) {
      metrics::registry().set(id, {label}, static_cast<double>(json::number_of(from, member).value_or(0)));
    };
    set(Id::egress_connections, "made", figures, "ended");
    set(Id::egress_connections, "failed", figures, "failed");
    set(Id::egress_open, "", figures, "open");
    set(Id::egress_bytes, "up", figures, "up");
    set(Id::egress_bytes, "down", figures, "down");
    set(Id::egress_names, "", figures, "names");
    set(Id::egress_dropped, "", figures, "dropped");
    const json::Value refused = figures.value("refused", json::Value::object()),
                      alarms = figures.value("alarms", json::Value::object());
    constexpr std::string_view kReasons = words(egress::Refusal{});
    for (std::size_t i = 1; std::cmp_less(i, count_words(kReasons)); ++i) {
      const std::string_view reason = word(kReasons, i);
      set(Id::egress_refusals, reason, refused, reason);
      if (is_alarm(static_cast<egress::Refusal>(i))) set(Id::egress_alarms, reason, alarms, reason);
    }
    set(Id::egress_alarms, "own_port", alarms, "own_port");
    co_return Status{};
  }
  co_return Status{};
}

task<http::Response> get_metrics(Call call) {
  metrics::registry().clear(Id::sessions_memory);
  metrics::registry().clear(Id::sessions_processes);
  // Without its answer in time the others are shown: a launcher that is silent is when they are looked at.
  task<void> asked = ask_launcher(call.services.launcher);
  (void)co_await with_timeout(std::move(asked), kPatience, "figures of the launcher");
  task<void> asked_of_the_gate = ask_way(&call.services);
  (void)co_await with_timeout(std::move(asked_of_the_gate), kPatience, "figures of caisson-gate");
  const AgentStatus& status = *call.services.status;
  measure_process(status);
  if (call.services.server != nullptr) measure_traffic(call.services);
  measure_launcher(call.services);
  measure_services(call.services);
  gauge(Id::ready, status.serving.passed && status.launcher.passed && status.sessions.passed ? 1 : 0);
  const bool open = wants_openmetrics(call.request);
  std::string text = metrics::registry().text(open ? Registry::Format::openmetrics : Registry::Format::prometheus);
  co_return http::text_response(
      200, open ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : "text/plain; version=0.0.4; charset=utf-8",
      std::move(text));
}

constexpr Route kOperate[] = {
    {http::Method::get,
     "/metrics",
     "metrics",
     Scope::system,
     kNone,
     Unknown::ignore,
     "Figures for Prometheus, or as OpenMetrics where Accept asks for that",
     bind<get_metrics>(),
     kDefaultBodyLimit,
     {},
     "text/plain"},
};

}  // namespace

Area operate_routes() { return kOperate; }

}  // namespace caisson::routes
