// `caisson session ls|kill|report`: asks the running launcher over its control socket, which serves root alone.
#include "launcher/audit/show.h"
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/control_client.h"
#include "launcher/cli/logs.h"

namespace caisson::cli {
namespace {

std::string cell(const json::Value& stat, const char* key) {
  const auto it = stat.find(key);
  return it == stat.end() || it->is_null() ? "-" : audit::show_value(*it);
}

Status kill_all(const std::vector<std::string>& sessions, const std::string& reason, const Options& options) {
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  for (const std::string& session : sessions)
    if (auto answer = control.ask("session_destroy", {{"session", session}, {"reason", reason}}); !answer)
      return std::unexpected(std::move(answer.error()).wrap("session " + quote(session)));
  return {};
}

Result<json::Value> list_all(const Options& options) {
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  json::Value all = json::Value::array();
  for (json::Value request = json::Value::object();;) {
    TRY_ASSIGN(json::Value answer, control.ask("session_list", request));
    for (json::Value& one : answer["sessions"]) all.push_back(std::move(one));
    if (!answer.contains("next")) return all;
    request["after"] = answer["next"];
  }
}

Result<json::Value> report_of(const std::string& session, const Options& options) {
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  return control.ask("session_report", {{"session", session}});
}

}  // namespace

int session_ls(Arguments args, const Options& options) {
  if (const auto parsed = Args::parse(args, {}, 0, 0); !parsed) return report_error(parsed.error(), options);
  const auto sessions = list_all(options);
  if (!sessions) return report_error(sessions.error(), options);
  if (options.json) return print_json({{"sessions", *sessions}}), 0;
  static constexpr const char* kColumns[] = {"session",   "domain",       "state",      "tier", "execs",
                                             "processes", "memory_bytes", "created_at", "label"};
  std::vector<std::vector<std::string>> rows = {
      {"SESSION", "DOMAIN", "STATE", "TIER", "EXECS", "PROCS", "MEMORY", "CREATED", "LABEL"}};
  for (const json::Value& session : *sessions) {
    auto& row = rows.emplace_back();
    for (const char* column : kColumns) row.push_back(cell(session, column));
  }
  print(table(rows));
  return 0;
}

int session_kill(Arguments words, const Options& options) {
  static constexpr Flag kFlags[] = {{"--reason", "", true}};
  const auto args = Args::parse(words, kFlags, 1, 1000);
  if (!args) return report_error(args.error(), options);
  const Status status = kill_all(args->words(), args->last("--reason").value_or("caisson session kill"), options);
  if (!status) return report_error(status.error(), options);
  if (options.json) print_json({{"ok", true}, {"ended", args->words()}});
  return 0;
}

int session_report(Arguments words, const Options& options) {
  const auto args = Args::parse(words, {}, 1, 1);
  if (!args) return report_error(args.error(), options);
  const auto answer = report_of(args->words()[0], options);
  if (!answer) return report_error(answer.error(), options);
  return print_document(answer->value("report", json::Value::object()), options);
}

}  // namespace caisson::cli
