// `caisson session ls|kill|report` and `caisson agent restart`: asks the running launcher over its control socket, which serves
// root alone.
#include "launcher/cli/args.h"
#include "launcher/cli/audit/show.h"
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

}  // namespace

Result<int> session_ls(const Args&, const Options& options) {
  TRY_ASSIGN(const json::Value sessions, list_all(options));
  if (options.json) return print_json({{"sessions", sessions}}), 0;
  static constexpr const char* kColumns[] = {"session",   "domain",       "state",      "tier", "execs",
                                             "processes", "memory_bytes", "created_at", "label"};
  std::vector<std::vector<std::string>> rows = {
      {"SESSION", "DOMAIN", "STATE", "TIER", "EXECS", "PROCS", "MEMORY", "CREATED", "LABEL"}};
  for (const json::Value& session : sessions) {
    auto& row = rows.emplace_back();
    for (const char* column : kColumns) row.push_back(cell(session, column));
  }
  print(table(rows));
  return 0;
}

Result<int> session_kill(const Args& args, const Options& options) {
  TRY(kill_all(args.words(), args.last("--reason").value_or("caisson session kill"), options));
  if (options.json) print_json({{"ok", true}, {"ended", args.words()}});
  return 0;
}

Result<int> agent_restart(const Args&, const Options& options) {
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  TRY(control.ask("agent_restart", json::Value::object()));
  if (options.json) print_json({{"ok", true}});
  return 0;
}

Result<int> session_report(const Args& args, const Options& options) {
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  TRY_ASSIGN(const json::Value answer, control.ask("session_report", {{"session", args.words()[0]}}));
  return print_document(answer.value("report", json::Value::object()), options);
}

}  // namespace caisson::cli
