#include "launcher/cli/audit/ocsf.h"

#include <cstdio>
#include <ctime>

#include "launcher/common/tables/fields.h"

namespace caisson::audit {
namespace {

using json::Value;

// Classes and their categories: the hundreds of a class are its category.
enum Class : int { kProcess = 1007, kApplication = 6002, kApi = 6003, kDetection = 2004 };
enum Severity : int { kInformational = 1, kLow = 2, kMedium = 3, kHigh = 4 };
enum Outcome : int { kUnknown = 0, kSuccess = 1, kFailure = 2 };

struct Row {
  std::string_view event;
  Class type;
  int activity;  // of its class
  Severity severity;
  Outcome status;
};
// Process activity: 1 launch, 2 terminate, 99 other. Application lifecycle: 3 start, 4 stop, 99 other. API activity: 1 create,
// 3 update, 4 delete, 99 other. Detection finding: 1 create.
constexpr Row kRows[] = {{"boot", kApplication, 3, kInformational, kSuccess},
                         {"agent_start", kApplication, 3, kInformational, kSuccess},
                         {"agent_exit", kApplication, 4, kInformational, kUnknown},
                         {"courier_start", kApplication, 3, kInformational, kSuccess},
                         {"courier_exit", kApplication, 4, kInformational, kUnknown},
                         {"egress_start", kApplication, 3, kInformational, kSuccess},
                         {"egress_exit", kApplication, 4, kInformational, kUnknown},
                         {"egress_connection", kApi, 99, kInformational, kUnknown},
                         {"egress_refused", kDetection, 1, kLow, kUnknown},
                         {"policy_reload", kApplication, 99, kInformational, kUnknown},
                         {"agent_violation", kDetection, 1, kHigh, kUnknown},
                         {"client_violation", kDetection, 1, kMedium, kUnknown},
                         {"limit_hit", kDetection, 1, kLow, kUnknown},
                         {"denial", kDetection, 1, kLow, kUnknown},
                         {"path_refusal", kDetection, 1, kInformational, kUnknown},
                         {"request_refused", kApi, 99, kLow, kFailure},
                         {"session_request", kApi, 1, kInformational, kUnknown},
                         {"session_start", kApi, 1, kInformational, kSuccess},
                         {"session_refused", kApi, 1, kMedium, kFailure},
                         {"session_end", kApi, 4, kInformational, kSuccess},
                         {"log_deleted", kApi, 4, kInformational, kSuccess},
                         {"note", kApi, 99, kInformational, kUnknown},
                         {"log_root", kApi, 99, kInformational, kSuccess},
                         {"exec_request", kProcess, 99, kInformational, kUnknown},
                         {"exec_start", kProcess, 1, kInformational, kSuccess},
                         {"exec_refused", kProcess, 1, kLow, kFailure},
                         {"exec_exit", kProcess, 2, kInformational, kUnknown},
                         {"exec_signal", kProcess, 99, kInformational, kSuccess}};
constexpr Row kOther = {"", kApplication, 99, kInformational, kUnknown};

// Milliseconds since the epoch, as OCSF has time; 0: it cannot be read.
std::int64_t milliseconds(const std::string& time) {
  std::tm tm{};
  int micro = 0;
  if (std::sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%6d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
                  &tm.tm_sec, &micro) != 7)
    return 0;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  return std::int64_t{::timegm(&tm)} * 1000 + micro / 1000;
}

std::string joined(const Value& argv) {
  std::string out;
  if (argv.is_array())
    for (const Value& word : argv) out += (out.empty() ? "" : " ") + (word.is_string() ? word.get<std::string>() : word.dump());
  return out;
}

// What of the record has a place in its class; what is taken is erased from `rest`.
Value process(const Value& record, Value& rest) {
  Value out = Value::object();
  if (record.contains("pid")) out["pid"] = record["pid"], rest.erase("pid");
  if (record.contains("argv")) out["cmd_line"] = joined(record["argv"]);
  if (record.contains("cwd")) out["working_directory"] = record["cwd"], rest.erase("cwd");
  out["uid"] = json::text_of(record, "exec");
  rest.erase("exec");
  return out;
}

void finding(Value& out, const Value& record, const std::string& event, std::string_view log) {
  const std::string what = json::text_of(record, "what"), limit = json::text_of(record, "limit"),
                    call = json::text_of(record, "syscall");
  out["finding_info"] = {{"uid", std::string(log) + "/" + std::to_string(record.value("seq", std::int64_t{0}))},
                         {"title", event + (limit.empty() ? "" : ": " + limit) + (call.empty() ? "" : ": " + call) +
                                       (what.empty() ? "" : ": " + what)},
                         {"types", {event}}};
}

}  // namespace

Value ocsf(const Value& record, std::string_view log) {
  const std::string event = json::text_of(record, "event");
  Row row = kOther;
  for (const Row& r : kRows)
    if (r.event == event) row = r;
  if (json::flag_of(record, "alarm")) row.severity = kHigh;
  Value rest = record;
  for (const char* key : {"seq", "time", "event", "hash"}) rest.erase(key);
  const std::int64_t time = milliseconds(json::text_of(record, "time"));
  Value out{{"class_uid", static_cast<int>(row.type)},
            {"category_uid", static_cast<int>(row.type) / 1000},
            {"activity_id", row.activity},
            {"activity_name", event},
            {"type_uid", static_cast<int>(row.type) * 100 + row.activity},
            {"severity_id", static_cast<int>(row.severity)},
            {"status_id", static_cast<int>(row.status)},
            {"time", time},
            {"metadata",
             {{"version", "1.3.0"},
              {"product", {{"name", "Caisson"}, {"vendor_name", "Caisson"}, {"version", CAISSON_VERSION}}},
              {"log_name", log},
              {"sequence", record.value("seq", std::int64_t{0})},
              {"original_time", json::text_of(record, "time")},
              {"uid", json::text_of(record, "hash")}}}};
  const bool session = log.starts_with("s-");
  if (session) out["actor"] = {{"session", {{"uid", log}}}};
  if (row.type == kProcess) {
    out["process"] = process(record, rest);
    if (const auto code = json::get_int(record, "exit_code"); code && *code) out["exit_code"] = **code, rest.erase("exit_code");
    if (event == "exec_exit") out["status_id"] = record.value("exit_code", -1) == 0 ? kSuccess : kFailure;
    out["device"] = {{"type_id", 6}, {"hostname", session ? log : "caisson"}};  // 6: virtual
  } else if (row.type == kApi) {
    out["api"] = {{"operation", event == "request_refused" ? json::text_of(record, "op") : event}};
    if (!out.contains("actor")) out["actor"] = {{"app_name", "caisson-agent"}};
    out["src_endpoint"] = {{"name", "caisson"}};
  } else if (row.type == kApplication) {
    out["app"] = {{"name", event.starts_with("agent") ? "caisson-agent" : "caisson-launcher"}};
  } else {
    finding(out, record, event, log);
  }
  if (const std::string what = json::text_of(record, "what"); !what.empty()) out["status_detail"] = what, rest.erase("what");
  if (!rest.empty()) out["unmapped"] = std::move(rest);
  return out;
}

}  // namespace caisson::audit
