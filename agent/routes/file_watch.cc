// /v1/file/watch. Its documentation shows both the usual envelope and bare fields, so every answer has both: {success, message,
// data, hint} and the fields of data beside them. Decisions where the contract is silent:
// - events is a stream if the client accepts text/event-stream, otherwise an answer like poll's.
// - an overflow is reported in the next answer, which begins after the lost events.
// - a watcher without a request for an hour ends.
#include <algorithm>
#include <charconv>

#include "agent/routes/file_calls.h"
#include "agent/routes/file_watch_types.h"
#include "agent/routes/table.h"
#include "agent/services/files/file_watches.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::FileEvent;
using services::FileWatches;
using Watcher = FileWatches::Pointer;

constexpr FileOperation kWatch{"watch", "Failed to watch path"};

http::Response superset(json::Value data, std::string_view message, bool success = true) {
  json::Value out = {{"success", success}, {"message", message}, {"data", data}, {"hint", nullptr}};
  for (auto& [key, value] : data.items())
    if (!out.contains(key)) out[key] = value;
  return http::json_response(200, out);
}

http::Response watch_failure(const services::FileFailure& why, const std::string& path) {
  const FileOperationError error = file_error(why, kWatch, path);
  json::Value body = {{"success", false}, {"message", error.message}, {"data", encode(error)}, {"detail", error.message}};
  const int status = file_status(error);
  return http::json_response(status >= 500 ? 400 : status, body);  // clients repeat a request that gets a 5xx
}

http::Response no_watcher() { return http::error_response(404, "Watcher not found"); }

json::Value event_json(const FileEvent& event) {
  json::Value out = {{"seq", event.seq},
                     {"type", event.type},
                     {"path", event.path},
                     {"relative_path", event.relative_path},
                     {"old_path", event.old_path.empty() ? json::Value(nullptr) : json::Value(event.old_path)},
                     {"is_dir", event.is_dir},
                     {"timestamp", iso_time(event.timestamp_ns)}};
  out["mtime"] = event.mtime_ns ? json::Value(iso_time(*event.mtime_ns)) : json::Value(nullptr);
  out["size"] = event.size ? json::Value(*event.size) : json::Value(nullptr);
  out["inode"] = event.inode ? json::Value(*event.inode) : json::Value(nullptr);
  return out;
}

json::Value watcher_json(const services::FileWatcher& w) {
  return {{"watcher_id", w.id},
          {"path", w.path},
          {"recursive", w.params.recursive},
          {"exclude", w.params.exclude},
          {"include_patterns", w.params.include},
          {"debounce", w.params.debounce_ms},
          {"is_dir", w.directory},
          {"status", w.attached ? "watching" : "interrupted"},
          {"created_at", iso_time(w.created_ns)},
          {"cursor", w.last_seq}};
}

// The kept events after the cursor.
json::Value batch(const services::FileWatcher& w, std::uint64_t cursor, std::size_t limit) {
  json::Value events = json::Value::array();
  const bool overflow = w.missed(cursor);
  std::uint64_t last = overflow ? std::max(cursor, w.lost_seq) : cursor;
  for (const FileEvent& event : w.events) {
    if (event.seq <= cursor) continue;
    if (events.size() >= limit) break;
    last = std::max(last, event.seq);
    events.push_back(event_json(event));
  }
  return {{"watcher_id", w.id},
          {"events", std::move(events)},
          {"cursor", last},
          {"overflow", overflow},
          {"has_more", last < w.last_seq}};
}

task<http::Response> watch_list(Call call) {
  json::Value list = json::Value::array();
  for (const Watcher& w : call.services.workspace->watches.all()) list.push_back(watcher_json(*w));
  json::Value data = {{"total", list.size()}, {"watchers", std::move(list)}};
  co_return superset(std::move(data), "Operation successful");
}

task<http::Response> watch_create(Call call, CreateWatchRequest body) {
  services::WatchParams params{.path = body.path,
                               .recursive = body.recursive,
                               .exclude = body.exclude.value_or(std::vector<std::string>()),
                               .include = body.include_patterns.value_or(std::vector<std::string>()),
                               .debounce_ms = body.debounce};
  auto made = co_await call.services.workspace->watches.create(std::move(params));
  if (!made) co_return watch_failure(made.error(), body.path);
  co_return superset(watcher_json(**made), "Watcher created");
}

task<void> stream_events(Call& call, Watcher w, std::uint64_t cursor) {
  CO_TRY_ASSIGN(http::EventStream stream, co_await call.event_stream());
  http::Event started{.event = "watch_started", .id = "", .data = json::dump(watcher_json(*w))};
  CO_TRY(co_await stream.send(std::move(started)));
  while (!w->stopped && !call.request.client_gone()) {
    co_await call.services.workspace->watches.attach(w);
    if (w->missed(cursor)) {
      cursor = w->lost_seq;
      json::Value lost = {{"watcher_id", w->id}, {"cursor", cursor}, {"overflow", true}};
      http::Event overflow{.event = "overflow", .id = "", .data = json::dump(lost)};
      CO_TRY(co_await stream.send(std::move(overflow)));
    }
    const std::deque<FileEvent> events = w->events;
    for (const FileEvent& event : events) {
      if (event.seq <= cursor) continue;
      cursor = event.seq;
      http::Event change{
          .event = "file_change", .id = w->id + ":" + std::to_string(event.seq), .data = json::dump(event_json(event))};
      CO_TRY(co_await stream.send(std::move(change)));
    }
    co_await FileWatches::wait(w, cursor, bridge::deadline_after(10));
  }
  co_return Status{};
}

// Where a client that comes back left off: "{watcher_id}:{seq}".
std::uint64_t last_event(const Call& call, const std::string& id) {
  const std::string_view text = call.request.header("last-event-id").value_or("");
  std::uint64_t seq = 0;
  if (text.starts_with(id + ":")) (void)std::from_chars(text.data() + id.size() + 1, text.data() + text.size(), seq);
  return seq;
}

task<http::Response> watch_events(Call call) {
  const Watcher w = call.services.workspace->watches.find(std::string(call.request.param("watcher_id")));
  if (!w) co_return no_watcher();
  const std::uint64_t cursor = last_event(call, w->id);
  if (!call.request.accepts_event_stream()) {
    co_await call.services.workspace->watches.attach(w);
    co_return superset(batch(*w, cursor, FileWatches::kKept), "Operation successful");
  }
  CO_TRY(co_await stream_events(call, w, cursor));
  co_return http::already_sent();
}

task<http::Response> watch_poll(Call call) {
  Issues issues;
  const auto body = decode_body<PollRequest>(call.request.body, call.route.unknown, call.route.body_limit, issues);
  std::int64_t cursor = body.cursor;
  // The installable SDK calls it `since`; `cursor` wins.
  if (const auto raw = json::parse(call.request.body); raw && raw->is_object() && !raw->contains("cursor")) {
    const json::Value since = raw->value("since", json::Value());
    if (!since.is_null())
      Codec<std::int64_t>::decode(since, {.min = 0}, json::Value::array({"body", "since"}), cursor, {{}, issues});
  }
  if (!issues.empty()) co_return validation_response(issues);
  const Watcher w = call.services.workspace->watches.find(std::string(call.request.param("watcher_id")));
  if (!w) co_return no_watcher();
  co_await call.services.workspace->watches.attach(w);
  const auto from = static_cast<std::uint64_t>(cursor);
  co_await FileWatches::wait(w, from, bridge::deadline_after(static_cast<double>(body.timeout)));
  co_await call.services.workspace->watches.attach(
      w);  // before an overflow is reported, so that a client that looks again misses no later event
  co_return superset(batch(*w, from, static_cast<std::size_t>(body.limit)), "Operation successful");
}

const FileEvent* first_of(const services::FileWatcher& w, const std::vector<std::string>& types, std::uint64_t cursor) {
  for (const FileEvent& event : w.events)
    if (event.seq > cursor && std::ranges::find(types, event.type) != types.end()) return &event;
  return nullptr;
}

http::Response waited(std::optional<json::Value> event, const std::string& path) {
  json::Value data = {{"path", path}, {"timed_out", !event.has_value()}};
  const bool came = event.has_value();
  data["event"] = came ? std::move(*event) : json::Value(nullptr);
  return superset(std::move(data), came ? "Event received" : "No such event before the timeout", came);
}

task<http::Response> watch_wait(Call call, WatchWaitRequest body) {
  FileWatches& watches = call.services.workspace->watches;
  const bridge::Clock::time_point deadline = bridge::deadline_after(static_cast<double>(body.timeout));
  services::WatchParams params{.path = body.path, .recursive = false, .debounce_ms = 0, .exact = true};
  auto made = co_await watches.create(std::move(params));
  if (!made) co_return watch_failure(made.error(), body.path);
  const Watcher w = *made;
  const std::vector<std::string> types = body.event_types.value_or(std::vector<std::string>());
  std::optional<json::Value> found;
  if (w->exists && std::ranges::find(types, "create") != types.end())
    found = event_json({.type = "create",
                        .path = w->path,
                        .relative_path = w->path.substr(w->path.rfind('/') + 1),
                        .is_dir = w->directory,
                        .timestamp_ns = w->created_ns});
  std::uint64_t cursor = 0;
  while (!found && bridge::Clock::now() < deadline && !call.request.client_gone()) {
    co_await watches.attach(w);
    if (const FileEvent* event = first_of(*w, types, cursor)) found = event_json(*event);
    else cursor = w->last_seq;
    if (!found) co_await FileWatches::wait(w, cursor, std::min(deadline, bridge::deadline_after(5)));
  }
  co_await watches.stop(w);
  co_return waited(std::move(found), w->path);
}

task<http::Response> watch_stop(Call call) {
  const Watcher w = call.services.workspace->watches.find(std::string(call.request.param("watcher_id")));
  if (!w) co_return no_watcher();
  co_await call.services.workspace->watches.stop(w);
  json::Value data = {{"watcher_id", w->id}, {"stopped", true}, {"status", "stopped"}};
  co_return superset(std::move(data), "Watcher stopped");
}

constexpr Endpoint bind_poll() {
  Endpoint e = bind<watch_poll>();
  e.describe_body = detail::describe<PollRequest>;
  return e;
}

using http::Method;

constexpr Route kWatchRoutes[] = {
    {Method::get, "/v1/file/watch", "list_watches_v1_file_watch_get", Scope::file_watch, kNone, Unknown::ignore,
     "List the watchers", bind<watch_list>()},
    {Method::post, "/v1/file/watch", "create_watch_v1_file_watch_post", Scope::file_watch, kNone, Unknown::ignore,
     "Watch a directory or a file", bind<watch_create>()},
    {Method::get, "/v1/file/watch/{watcher_id}/events", "watch_events_v1_file_watch__watcher_id__events_get", Scope::file_watch,
     kEventStream, Unknown::ignore, "Changes as they come", bind<watch_events>()},
    {Method::post, "/v1/file/watch/{watcher_id}/poll", "poll_events_v1_file_watch__watcher_id__poll_post", Scope::file_watch,
     kNone, Unknown::ignore, "Changes after a cursor", bind_poll()},
    {Method::post, "/v1/file/watch/wait", "wait_for_file_v1_file_watch_wait_post", Scope::file_watch, kNone, Unknown::ignore,
     "Wait for one file to change", bind<watch_wait>()},
    {Method::del, "/v1/file/watch/{watcher_id}", "stop_watch_v1_file_watch__watcher_id__delete", Scope::file_watch, kNone,
     Unknown::ignore, "End a watcher", bind<watch_stop>()},
};

}  // namespace

Area file_watch_routes() { return kWatchRoutes; }

}  // namespace caisson::routes
