// /v1/audit: reads the launcher's audit logs of sessions. The agent gets descriptors of these logs and of nothing else. With
// Accept: text/event-stream (or follow=true) a log is streamed, including future records:
//   id: <seq>   event: <the record's event>   data: the line of the log, byte for byte
// The stream ends after session_end. Last-Event-ID continues after that record.
#include <algorithm>
#include <charconv>

#include "agent/bridge/launcher_client.h"
#include "agent/routes/audit_log.h"
#include "agent/routes/audit_types.h"
#include "agent/routes/session_id.h"
#include "agent/routes/table.h"
#include "agent/services/common/counted.h"
#include "launcher/common/base/session_id.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

constexpr std::int64_t kDefaultLimit = 100, kMaxSessions = 200, kMaxRecords = 1000;
constexpr std::size_t kMaxExamined = 1000;                      // sessions examined for one answer
constexpr std::size_t kMaxPage = 4 << 20, kMaxScan = 16 << 20;  // bytes returned, and bytes examined, for one answer
constexpr std::size_t kMaxStreams = 64, kMaxKinds = 16;
constexpr std::chrono::milliseconds kPoll{20};

int g_streams = 0;  // one thread

// Reads the query's parameters and collects their errors in the shape of FastAPI's 422.
class Query {
 public:
  explicit Query(const http::Request& request) : request_(request) {}

  std::int64_t integer(const char* name, std::int64_t fallback, std::int64_t least, std::int64_t most) {
    const auto text = request_.query_value(name);
    return text ? number(name, *text, least, most) : fallback;
  }
  std::int64_t number(const char* name, std::string_view text, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return value;
    add(name, "int_parsing", "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }
  // The part of a time to compare: without the Z, so that fractions of a second sort after the second.
  std::string time(const char* name) {
    static constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
    std::string_view text = request_.query_value(name).value_or("");
    if (text.empty()) return {};
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    bool good = text.ends_with('Z') && text.size() > kShape.size() && text.size() <= 30;
    for (std::size_t i = 0; good && i + 1 < text.size(); ++i)
      good = i < kShape.size() ? (kShape[i] == 'd' ? digit(text[i]) : text[i] == kShape[i])
                               : (i == kShape.size() ? text[i] == '.' : digit(text[i]));
    if (!good) add(name, "datetime_parsing", "must be a time in UTC, such as 2026-01-31T12:00:00Z");
    return std::string(text.substr(0, text.size() - 1));
  }
  std::vector<std::string> kinds() {
    std::vector<std::string> out;
    std::string_view rest = request_.query_value("kind").value_or("");
    while (!rest.empty() && issues.empty()) {
      const std::string_view kind = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(kind.size() + 1, rest.size()));
      const bool plain = std::ranges::all_of(kind, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
      if (kind.empty() || kind.size() > 32 || !plain || out.size() == kMaxKinds)
        add("kind", "value_error", "must be up to 16 names of events with commas in between, such as exec_exit,denial");
      out.emplace_back(kind);
    }
    return out;
  }
  std::string one_of(const char* name, std::initializer_list<std::string_view> allowed) {
    const std::string value(request_.query_value(name).value_or(""));
    if (value.empty() || std::ranges::find(allowed, value) != allowed.end()) return value;
    std::string all;
    for (const std::string_view choice : allowed) all.append(all.empty() ? "" : ", ").append(choice);
    add(name, "enum", "must be one of: " + all);
    return value;
  }
  void add(const char* name, std::string_view type, const std::string& what) {
    issues.add(json::Value::array({"query", name}), type, what);
  }
  Issues issues;

 private:
  const http::Request& request_;
};

AuditSession summary(const std::string& id, const AuditLog::Ends& ends) {
  AuditSession out{.id = id, .workspace = "default", .state = ends.running ? "running" : "ended", .bytes = ends.bytes};
  if (ends.first && json::text_of(ends.first->fields, "event") == "session_request") {
    out.domain = json::text_of(ends.first->fields, "domain");
    out.label = json::text_of(ends.first->fields, "label");
    out.started = json::text_of(ends.first->fields, "time");
    if (const std::string name = json::text_of(ends.first->fields, "workspace"); !name.empty()) out.workspace = name;
  }
  if (!ends.last) return out;
  const json::Value& last = ends.last->fields;
  out.records = ends.last->seq;
  out.head = json::text_of(last, "hash");
  if (json::text_of(last, "event") != "session_end") return out;
  out.state = "ended";
  out.ended = json::text_of(last, "time");
  out.reason = json::text_of(last, "reason");
  out.end = bridge::session_end(last);
  if (const auto denials = last.find("denials"); denials != last.end() && denials->is_object())
    out.denials = denials->value("recorded", std::int64_t{0}) + denials->value("dropped", std::int64_t{0});
  return out;
}

task<http::Response> list_sessions(Call call) {
  Query query(call.request);
  const auto limit = static_cast<std::size_t>(query.integer("limit", kDefaultLimit, 1, kMaxSessions));
  const std::string state = query.one_of("state", {"running", "ended"});
  const std::string domain(call.request.query_value("domain").value_or(""));
  std::string after(call.request.query_value("after").value_or(""));
  if (!after.empty() && session_number(after) == 0) query.add("after", "value_error", "must be `next` of the answer before");
  if (domain.size() > 64) query.add("domain", "string_too_long", "must have at most 64 characters");
  if (!query.issues.empty()) co_return validation_response(query.issues);
  AuditSessions out;
  bridge::LauncherClient& launcher = *call.services.launcher;
  for (std::size_t examined = 0; out.sessions.size() < limit;) {
    CO_TRY_ASSIGN(const json::Value page, co_await launcher.audit_list(after, static_cast<std::int64_t>(limit)));
    out.next.reset();
    for (const json::Value& row : page["sessions"]) {
      if (out.sessions.size() == limit || ++examined > kMaxExamined) {
        out.next = after;
        co_return http::ok(encode(out));
      }
      after = row["session"].get<std::string>();
      const auto ends = co_await AuditLog::ends(launcher, after);
      if (!ends) continue;  // deleted meanwhile
      AuditSession session = summary(after, *ends);
      if ((state.empty() || session.state == state) && (domain.empty() || session.domain == domain))
        out.sessions.push_back(std::move(session));
    }
    if (page["sessions"].size() < limit) co_return http::ok(encode(out));
    out.next = after;
  }
  co_return http::ok(encode(out));
}

struct Wanted {
  std::vector<std::string> kinds;
  std::string since, until;
  [[nodiscard]] bool match(const AuditRecord& record) const {
    const std::string time = json::text_of(record.fields, "time");
    return (kinds.empty() || std::ranges::find(kinds, json::text_of(record.fields, "event")) != kinds.end()) &&
           (since.empty() || time >= since) && (until.empty() || time < until);
  }
};

task<http::Response> stream(Call call, AuditLog log, Wanted wanted) {
  if (static_cast<std::size_t>(g_streams) >= kMaxStreams)
    co_return http::fail("more than " + std::to_string(kMaxStreams) + " audit logs are streamed at once");
  const services::Counted counted(g_streams);
  CO_TRY_ASSIGN(http::EventStream events, co_await call.event_stream());
  std::size_t scanned = 0;
  while (!call.request.client_gone()) {
    CO_TRY_ASSIGN(std::optional<AuditRecord> record, co_await log.next());
    if (!record && log.ended()) break;
    // Also after 256 KiB of records, so that other requests are served.
    if (!record || (scanned += record->line.size()) > 256 * 1024) {
      scanned = 0;
      co_await sleep_for(record ? std::chrono::milliseconds(0) : kPoll);
    }
    if (!record || !wanted.match(*record)) continue;
    http::Event event{
        .event = json::text_of(record->fields, "event"), .id = std::to_string(record->seq), .data = std::move(record->line)};
    CO_TRY(co_await events.send(std::move(event)));
  }
  co_return http::already_sent();
}

task<http::Response> read_session(Call call) {
  Query query(call.request);
  const bool follow = query.one_of("follow", {"true", "false"}) == "true" || call.request.accepts_event_stream();
  std::int64_t after = query.integer("after_seq", 0, 0, std::numeric_limits<std::int64_t>::max() - 1);
  if (const auto last = call.request.header("last-event-id"); last && follow)
    after = query.number("Last-Event-ID", *last, 0, std::numeric_limits<std::int64_t>::max() - 1);
  const auto limit = static_cast<std::size_t>(query.integer("limit", kDefaultLimit, 1, kMaxRecords));
  const Wanted wanted{query.kinds(), query.time("since"), query.time("until")};
  if (!query.issues.empty()) co_return validation_response(query.issues);
  const std::string id = launcher_session(call);
  bridge::LauncherClient& launcher = *call.services.launcher;
  auto opened = co_await AuditLog::open(launcher, id, after);
  if (!opened && opened.error().code == Code::not_found) co_return http::session_not_found();
  if (!opened) co_return std::unexpected(std::move(opened).error());
  AuditLog log = std::move(*opened);
  if (follow) co_return co_await stream(std::move(call), std::move(log), wanted);

  AuditRecords out;
  CO_TRY_ASSIGN(const AuditLog::Ends ends, co_await AuditLog::ends(launcher, id));
  out.session = summary(id, ends);
  std::size_t given = 0, scanned = 0;
  for (;;) {
    CO_TRY_ASSIGN(std::optional<AuditRecord> record, co_await log.next());
    if (!record) break;
    scanned += record->line.size();
    after = record->seq;
    if (wanted.match(*record)) {
      given += record->line.size();
      out.records.push_back(std::move(record->fields));
    }
    if (out.records.size() < limit && given < kMaxPage && scanned < kMaxScan) continue;
    if (after < ends.last->seq) out.next = after;
    break;
  }
  co_return http::ok(encode(out));
}

constexpr std::string_view kStates[] = {"running", "ended"}, kFollow[] = {"true", "false"};
constexpr Parameter kListQuery[] = {
    {"limit", "integer", "At most so many", false, {.min = 1, .max = kMaxSessions}, "100"},
    {"after", "string", "`next` of the answer before", false, {.max_length = 64}},
    {"state", "string", "Sessions of this state only", false, {.one_of = kStates}},
    {"domain", "string", "Sessions of this policy domain only", false, {.max_length = 64}},
};
constexpr Parameter kReadQuery[] = {
    {"after_seq", "integer", "Records after this number", false, {.min = 0}, "0"},
    {"limit", "integer", "At most so many; an answer ends at about 4 MiB", false, {.min = 1, .max = kMaxRecords}, "100"},
    {"kind", "string", "Of these events only, with commas in between"},
    {"since", "string", "Not before this time, RFC 3339 in UTC", false, {.format = "date-time"}},
    {"until", "string", "Before this time, RFC 3339 in UTC", false, {.format = "date-time"}},
    {"follow",
     "string",
     "true: a stream of events, as with Accept: text/event-stream, to the session's end",
     false,
     {.one_of = kFollow},
     "\"false\""},
};

constexpr Route kAudit[] = {
    {http::Method::get, "/v1/audit/sessions", "list_audit_sessions", Scope::audit, kNone, Unknown::ignore,
     "The sessions that have an audit log, those of earlier boots included", bind<list_sessions, AuditSessions>(),
     kDefaultBodyLimit, kListQuery},
    {http::Method::get, "/v1/audit/sessions/{session_id}", "read_audit_session", Scope::audit, kEventStream, Unknown::ignore,
     "Records of one session's audit log, a page at a time or as they come", bind<read_session, AuditRecords>(),
     kDefaultBodyLimit, kReadQuery},
};

}  // namespace

Area audit_routes() { return kAudit; }

}  // namespace caisson::routes
