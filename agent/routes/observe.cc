// /v1/sandbox/observe: the use of the sessions of the request's workspace. Live figures, also as Server-Sent Events on an
// explicit Accept: text/event-stream:
//   id: <number>   event: snapshot   data: an ObservationLiveSnapshot
// one at the interval of the running observation, otherwise every second, until the client leaves.
#include <charconv>

#include "agent/http/gzip.h"
#include "agent/routes/observe_types.h"
#include "agent/routes/table.h"
#include "agent/services/common/counted.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::Observation;
using services::Observer;
using services::ReportPtr;

constexpr std::string_view kObservePath = "/v1/sandbox/observe";
constexpr std::size_t kMaxStreams = 32, kPiece = 64 * 1024;
constexpr std::int64_t kDefaultRows = 10;

int g_streams = 0;  // one thread

std::optional<std::string> time_text(const std::optional<std::int64_t>& ns) {
  return ns ? std::optional(sys::rfc3339(*ns)) : std::nullopt;
}

std::vector<ObservationEvent> events_of(const std::deque<services::ObservedEvent>& events) {
  std::vector<ObservationEvent> out;
  for (const services::ObservedEvent& e : events) out.push_back({sys::rfc3339(e.time_ns), e.type, e.message, e.data});
  return out;
}

ObservationLiveSnapshot snapshot_of(const services::Sample& sample, std::string_view mode, std::size_t rows) {
  ObservationLiveSnapshot out{.captured_at = sys::rfc3339(sample.captured_ns), .mode = std::string(mode)};
  out.cgroup = sample.total;
  out.disk = sample.disk;
  out.top_processes = sample.processes;
  if (out.top_processes.size() > rows) out.top_processes.resize(rows);
  return out;
}

std::string_view mode_of(const Observer& observer) {
  return observer.running() ? std::string_view(observer.latest()->mode) : "off";
}

ObservationReportInfo info_of(const services::ObservedReport& report) {
  ObservationReportInfo info{.report_id = report.id,
                             .reason = report.reason,
                             .created_at = sys::rfc3339(report.created_ns),
                             .path = std::string(kObservePath) + "/reports/" + report.id,
                             .size_bytes = static_cast<std::int64_t>(report.packed.size())};
  if (!report.observation->id.empty()) info.session_id = report.observation->id;
  return info;
}

json::Value head_of(const services::ObservedReport& report) {
  const Observation& o = *report.observation;
  const auto optional = [](const std::optional<std::string>& text) { return text ? json::Value(*text) : json::Value(nullptr); };
  return {{"format", 1},
          {"report_id", report.id},
          {"reason", report.reason},
          {"created_at", sys::rfc3339(report.created_ns)},
          {"version", CAISSON_VERSION},
          {"session_id", o.id.empty() ? json::Value(nullptr) : json::Value(o.id)},
          {"mode", o.mode},
          {"started_at", sys::rfc3339(o.started_ns)},
          {"ends_at", optional(time_text(o.ends_ns))},
          {"ended_at", optional(time_text(o.ended_ns))},
          {"interval_seconds", o.interval_seconds},
          {"samples_dropped", o.dropped},
          {"events", encode(events_of(o.events))}};
}

// One JSON object: the head, and `samples`, each an ObservationLiveSnapshot with the sessions one by one. Made once, in pieces,
// with pauses in which other requests are served.
task<void> pack(ReportPtr report) {
  if (!report->packed.empty()) co_return Status{};
  http::Gzip gzip;
  std::string text = json::dump(head_of(*report));
  text.pop_back();
  text += ",\"samples\":[";
  for (std::size_t i = 0; i < report->observation->samples.size(); ++i) {
    const services::Sample& sample = *report->observation->samples[i];
    json::Value one = encode(snapshot_of(sample, report->observation->mode, services::Meter::kMostRows));
    one.erase("recent_events");
    one["sessions"] = encode(sample.sessions);
    text += (i == 0 ? "" : ",") + json::dump(one);
    if (text.size() < kPiece) continue;
    gzip.append(text);
    text.clear();
    co_await sleep_for(std::chrono::milliseconds(0));
  }
  gzip.append(text + "]}\n");
  report->packed = gzip.finish();
  co_return Status{};
}

task<http::Response> observe_status(Call call) {
  const Observer& observer = call.services.workspace->observer;
  ObservationStatus out{.mode = std::string(mode_of(observer)), .running = observer.running()};
  out.report_count = static_cast<std::int64_t>(observer.reports().size());
  if (const auto latest = observer.latest()) {
    out.session_id = latest->id;
    out.started_at = sys::rfc3339(latest->started_ns);
    out.ends_at = time_text(latest->ended_ns ? latest->ended_ns : latest->ends_ns);
    out.interval_seconds = latest->interval_seconds;
    if (latest->last_sample_ns != 0) out.last_sample_at = sys::rfc3339(latest->last_sample_ns);
    out.runtime_dir = kObservePath;
  }
  co_return http::ok(encode(out));
}

task<json::Value> take_snapshot(Observer* observer, std::size_t rows) {
  CO_TRY_ASSIGN(const auto sample, co_await observer->live());
  ObservationLiveSnapshot out = snapshot_of(*sample, mode_of(*observer), rows);
  out.recent_events = events_of(observer->recent_events());
  co_return encode(out);
}

task<http::Response> stream(Call call, std::size_t rows) {
  if (static_cast<std::size_t>(g_streams) >= kMaxStreams)
    co_return http::fail("more than " + std::to_string(kMaxStreams) + " clients observe at once");
  const services::Counted counted(g_streams);
  Observer* observer = &call.services.workspace->observer;
  CO_TRY_ASSIGN(http::EventStream events, co_await call.event_stream());
  for (std::uint64_t number = 1; !call.request.client_gone(); ++number) {
    CO_TRY_ASSIGN(const json::Value snapshot, co_await take_snapshot(observer, rows));
    http::Event event{.event = "snapshot", .id = std::to_string(number), .data = json::dump(snapshot)};
    CO_TRY(co_await events.send(std::move(event)));
    const auto pause = static_cast<std::int64_t>(observer->interval_seconds() * 1000);
    // In short waits, so that a client that has left is noticed.
    for (std::int64_t waited = 0; waited < pause && !call.request.client_gone(); waited += 250)
      co_await sleep_for(std::chrono::milliseconds(std::min<std::int64_t>(pause - waited, 250)));
  }
  co_return http::already_sent();
}

task<http::Response> observe_live(Call call) {
  std::int64_t rows = kDefaultRows;
  if (const auto text = call.request.query_value("top_rows")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), rows);
    if (error != std::errc() || end != text->data() + text->size()) {
      Issues issues;
      issues.add(json::Value::array({"query", "top_rows"}), "int_parsing",
                 "Input should be a valid integer, unable to parse string as an integer");
      co_return validation_response(issues);
    }
  }
  const auto most = static_cast<std::int64_t>(services::Meter::kMostRows);
  const auto wanted = static_cast<std::size_t>(std::clamp<std::int64_t>(rows, 0, most));
  if (call.request.accepts_event_stream()) co_return co_await stream(std::move(call), wanted);
  CO_TRY_ASSIGN(json::Value data, co_await take_snapshot(&call.services.workspace->observer, wanted));
  co_return http::ok(std::move(data));
}

task<http::Response> observe_start(Call call, ObserveStart body) {
  services::StartObservation wanted{.mode = std::move(body.mode),
                                    .key = body.idempotency_key.value_or(""),
                                    .duration_seconds = body.duration_seconds,
                                    .interval_seconds = body.interval_seconds,
                                    .processes = body.include_processes,
                                    .disk = body.include_disk};
  CO_TRY_ASSIGN(const auto begun, call.services.workspace->observer.start(wanted));
  ObservationStartResult out{.session_id = begun->id,
                             .mode = begun->mode,
                             .started_at = sys::rfc3339(begun->started_ns),
                             .ends_at = time_text(begun->ends_ns),
                             .interval_seconds = begun->interval_seconds,
                             .runtime_dir = std::string(kObservePath)};
  co_return http::ok(encode(out));
}

task<http::Response> observe_stop(Call call, ObserveStop body) {
  const auto stopped = call.services.workspace->observer.stop(body.session_id.value_or(""));
  if (!stopped && body.session_id) co_return http::error_response(404, stopped.error().what);
  if (!stopped) co_return http::fail("no observation is running");
  ObservationStopResult out{
      .session_id = stopped->observation->id, .stopped = stopped->now, .report_ready = !stopped->observation->samples.empty()};
  co_return http::ok(encode(out));
}

task<http::Response> observe_export(Call call, ObserveExport body) {
  auto made = co_await call.services.workspace->observer.report(body.session_id.value_or(""), std::move(body.reason),
                                                                body.idempotency_key.value_or(""));
  if (!made && made.error().code == Code::not_found) co_return http::error_response(404, made.error().what);
  CO_TRY_ASSIGN(const ReportPtr report, std::move(made));
  CO_TRY(co_await pack(report));
  co_return http::ok(encode(info_of(*report)));
}

task<http::Response> observe_reports(Call call) {
  std::vector<ObservationReportInfo> out;
  const std::deque<ReportPtr> reports = call.services.workspace->observer.reports();
  for (const ReportPtr& report : reports) {
    CO_TRY(co_await pack(report));
    out.push_back(info_of(*report));
  }
  co_return http::ok(encode(out));
}

http::Response report_not_found() { return http::error_response(404, services::Observer::unknown("Report")); }

task<http::Response> download_report(Call call) {
  const ReportPtr report = call.services.workspace->observer.find_report(std::string(call.request.param("report_id")));
  if (!report) co_return report_not_found();
  CO_TRY(co_await pack(report));
  http::Response out = http::text_response(200, "application/gzip", report->packed);
  out.headers = {{"content-disposition", "attachment; filename=\"" + report->id + ".json.gz\""}};
  co_return out;
}

task<http::Response> delete_report(Call call) {
  const ReportPtr report = call.services.workspace->observer.find_report(std::string(call.request.param("report_id")));
  if (!report) co_return report_not_found();
  CO_TRY(co_await pack(report));
  call.services.workspace->observer.remove_report(report);
  co_return http::ok(encode(info_of(*report)), "Report deleted");
}

using http::Method;

constexpr Parameter kLiveQuery[] = {{"top_rows", "integer", "Rows of processes, 0 to 50", false, {}, "10"}};

constexpr Route kObserve[] = {
    {Method::get, "/v1/sandbox/observe/status", "observe_status_v1_sandbox_observe_status_get", Scope::sandbox, kNone,
     Unknown::ignore, "Tell whether an observation runs", bind<observe_status, ObservationStatus>()},
    {Method::get, "/v1/sandbox/observe/live", "observe_live_v1_sandbox_observe_live_get", Scope::sandbox, kEventStream,
     Unknown::ignore, "The present use of the sessions", bind<observe_live, ObservationLiveSnapshot>(), kDefaultBodyLimit,
     kLiveQuery},
    {Method::post, "/v1/sandbox/observe/start", "observe_start_v1_sandbox_observe_start_post", Scope::sandbox, kNone,
     Unknown::ignore, "Begin an observation", bind<observe_start, ObservationStartResult>()},
    {Method::post, "/v1/sandbox/observe/stop", "observe_stop_v1_sandbox_observe_stop_post", Scope::sandbox, kNone,
     Unknown::ignore, "End it", bind<observe_stop, ObservationStopResult>()},
    {Method::post, "/v1/sandbox/observe/export", "observe_export_v1_sandbox_observe_export_post", Scope::sandbox, kNone,
     Unknown::ignore, "Make a report of it", bind<observe_export, ObservationExportResult>()},
    {Method::get, "/v1/sandbox/observe/reports", "observe_reports_v1_sandbox_observe_reports_get", Scope::sandbox, kNone,
     Unknown::ignore, "List the reports", bind<observe_reports, std::vector<ObservationReportInfo>>()},
    {Method::get,
     "/v1/sandbox/observe/reports/{report_id}",
     "observe_report_download_v1_sandbox_observe_reports__report_id__get",
     Scope::sandbox,
     kNone,
     Unknown::ignore,
     "Download a report: JSON, packed by gzip",
     bind<download_report>(),
     kDefaultBodyLimit,
     {},
     "application/gzip"},
    {Method::del, "/v1/sandbox/observe/reports/{report_id}",
     "observe_report_delete_v1_sandbox_observe_reports__report_id__delete", Scope::sandbox, kNone, Unknown::ignore,
     "Delete a report", bind<delete_report, ObservationReportInfo>()},
};

}  // namespace

Area observe_routes() { return kObserve; }

}  // namespace caisson::routes
