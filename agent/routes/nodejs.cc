// /v1/nodejs: JavaScript, alone or in a REPL that keeps its variables. An unknown session is 404 in the envelope, except where
// code is to run in it: then it is made.
#include <cmath>

#include "agent/routes/nodejs_types.h"
#include "agent/routes/table.h"
#include "agent/services/code/code_service.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::Language;
using services::ReplService;

constexpr std::int64_t kDefaultTimeout = 30;

NodeJSOutput output_of(const json::Value& said) {
  NodeJSOutput out;
  const auto text = [&said](std::string_view key) -> std::optional<std::string> {
    const auto it = said.find(key);
    if (it == said.end() || !it->is_string()) return std::nullopt;
    return it->get<std::string>();
  };
  out.output_type = text("output_type").value_or("");
  out.name = text("name");
  out.text = text("text");
  out.ename = text("ename");
  out.evalue = text("evalue");
  if (const auto lines = said.find("traceback"); lines != said.end()) out.traceback = lines->get<std::vector<std::string>>();
  if (const auto data = said.find("data"); data != said.end()) out.data = data->get<std::map<std::string, json::Value>>();
  if (const auto data = said.find("metadata"); data != said.end()) out.metadata = data->get<std::map<std::string, json::Value>>();
  return out;
}

NodeJSSessionInfo info_of(const services::ReplSession& s) {
  NodeJSSessionInfo info{.session_id = s.id, .cwd = s.cwd};
  info.created_at = static_cast<double>(s.created_ms);
  info.last_used = static_cast<double>(s.last_used_ms);
  info.max_idle_time = s.max_idle_s * 1000;
  info.age_seconds = std::max<std::int64_t>(0, (sys::realtime_ns() / 1'000'000 - s.last_used_ms) / 1000);
  info.state = s.busy() ? "EXECUTING" : "IDLE";
  return info;
}

// The session of the path, if it exists and has the version of the query (if any).
ReplService::SessionPtr session_of(const Call& call) {
  ReplService::SessionPtr s = call.services.workspace->code.node().find(std::string(call.request.param("session_id")));
  if (!s) return nullptr;
  const services::ToolInventory its{.node = {s->version}};
  const auto version = call.request.query_value("version").value_or("");
  return its.choose(Language::javascript, version) ? s : nullptr;
}

task<http::Response> nodejs_execute(Call call, NodeJSExecuteRequest body) {
  services::CodeService& service = call.services.workspace->code;
  services::CodeJob job{.language = Language::javascript};
  CO_TRY_ASSIGN(const auto inventory, co_await service.inventory());
  CO_TRY_ASSIGN(job.interpreter, inventory->choose(job.language, body.version.value_or("")));
  job.code = body.code;
  job.cwd = body.cwd.value_or("");
  job.input = body.stdin_text.value_or("");
  job.timeout_s = body.timeout.value_or(kDefaultTimeout);
  if (body.files)
    for (auto& [path, text] : *body.files)
      if (text) job.files[path] = std::move(*text);
  job.client_gone = std::shared_ptr<const bool>(call.request.peer, &call.request.peer->gone);
  const std::string id = body.session_id.value_or("");
  auto ran =
      body.stateful.value_or(false) || !id.empty() ? service.node().execute(id, std::move(job)) : service.run(std::move(job));
  CO_TRY_ASSIGN(services::CodeOutcome outcome, co_await std::move(ran));

  NodeJSExecuteResponse out{.status = std::move(outcome.status), .execution_count = outcome.execution_count};
  for (const json::Value& said : outcome.outputs) out.outputs.push_back(output_of(said));
  out.code = std::move(body.code);
  out.stdout_text = std::move(outcome.out);
  out.stderr_text = std::move(outcome.err);
  out.exit_code = outcome.exit_code;
  if (!outcome.session_id.empty()) out.session_id = std::move(outcome.session_id);
  out.end = std::move(outcome.end);
  const std::string message = out.status == "timeout" ? "The time was over" : "Operation successful";
  std::optional<std::string> hint;
  if (!outcome.hint.empty()) hint = std::move(outcome.hint);
  co_return http::ok(encode(out), message, hint);
}

task<http::Response> nodejs_info(Call call) {
  CO_TRY_ASSIGN(const auto inventory, co_await call.services.workspace->code.inventory());
  NodeJSRuntimeInfo out;
  out.description = "Node.js in confined sessions: alone for each run, or a REPL with state";
  if (inventory->node.empty()) {
    out.error = "Node.js is not installed in the sessions' view";
    co_return http::ok(encode(out));
  }
  const services::InstalledVersion& node = inventory->node.front();
  out.node_version = "v" + node.version;
  out.runtime_directory = node.path.substr(0, node.path.rfind('/'));
  for (const auto& one : inventory->node)
    out.available_versions.push_back(services::version_name(Language::javascript, one.version));
  out.current_version = out.available_versions.front();
  auto packages = co_await call.services.workspace->code.node_packages(node.path);
  if (!packages) {
    out.error = packages.error().text();
    co_return http::ok(encode(out));
  }
  if (const auto npm = packages->find("npm"); npm != packages->end() && npm->is_string())
    out.npm_version = npm->get<std::string>();
  if (const auto dir = packages->find("directory"); dir != packages->end() && dir->is_string())
    out.global_npm_directory = dir->get<std::string>();
  if (const auto list = packages->find("packages"); list != packages->end() && list->is_array()) {
    Issues issues;
    Codec<std::vector<NodeJSPackageInfo>>::decode(*list, {}, json::Value::array(), out.global_packages,
                                                  Decode{Unknown::ignore, issues});
  }
  co_return http::ok(encode(out));
}

task<http::Response> nodejs_create_session(Call call, NodeJSCreateSessionRequest body) {
  services::CodeService& service = call.services.workspace->code;
  CO_TRY_ASSIGN(const auto inventory, co_await service.inventory());
  ReplService::CreateParams params{.session_id = body.session_id.value_or(""), .cwd = body.cwd.value_or("")};
  const auto version = call.request.query_value("version").value_or("");
  CO_TRY_ASSIGN(params.interpreter, inventory->choose(Language::javascript, version));
  params.max_idle_s = body.max_idle_time.value_or(params.max_idle_s);
  CO_TRY_ASSIGN(const ReplService::Created made, co_await service.node().create(std::move(params)));
  NodeJSCreateSessionResponse out{.session_id = made.session->id, .created = made.is_new};
  out.message = made.is_new ? "Session created" : "Session already exists";
  out.session = info_of(*made.session);
  co_return http::ok(encode(out));
}

task<http::Response> nodejs_list_sessions(Call call) {
  CO_TRY_ASSIGN(const auto inventory, co_await call.services.workspace->code.inventory());
  const auto wanted = call.request.query_value("version").value_or("");
  CO_TRY_ASSIGN(const services::InstalledVersion version, inventory->choose(Language::javascript, wanted));
  NodeJSSessionListResponse out;
  for (const auto& s : call.services.workspace->code.node().sessions())
    if (wanted.empty() || s->version.path == version.path) out.sessions[s->id] = info_of(*s);
  co_return http::ok(encode(out));
}

task<http::Response> nodejs_get_session(Call call) {
  const auto s = session_of(call);
  if (!s) co_return http::session_not_found();
  co_return http::ok(encode(NodeJSSessionResponse{info_of(*s)}));
}

task<http::Response> nodejs_update_session(Call call, NodeJSUpdateSessionRequest body) {
  const auto s = session_of(call);
  if (!s) co_return http::session_not_found();
  if (body.cwd && !body.cwd->empty()) CO_TRY(co_await call.services.workspace->code.node().move(s, *body.cwd));
  if (body.max_idle_time) s->max_idle_s = *body.max_idle_time, s->save();
  s->touch();
  NodeJSUpdateSessionResponse out{.updated = body.cwd.has_value() || body.max_idle_time.has_value(), .session = info_of(*s)};
  co_return http::ok(encode(out));
}

task<http::Response> nodejs_delete_session(Call call) {
  const auto s = session_of(call);
  if (!s) co_return http::session_not_found();
  CO_TRY(co_await call.services.workspace->code.node().close(s, "closed by the client"));
  co_return http::ok(encode(NodeJSDeleteSessionResponse{true}));
}

using http::Method;

constexpr Parameter kVersion[] = {{"version", "string", "Version of Node.js, such as node22 or 22", false, {}, "null"}};

constexpr Route kNodejs[] = {
    {Method::post, "/v1/nodejs/execute", "execute_nodejs_code", Scope::nodejs, kNone, Unknown::ignore, "Run JavaScript",
     bind<nodejs_execute, NodeJSExecuteResponse>()},
    {Method::get, "/v1/nodejs/info", "get_nodejs_info", Scope::nodejs, kNone, Unknown::ignore, "Versions and packages",
     bind<nodejs_info, NodeJSRuntimeInfo>()},
    {Method::post, "/v1/nodejs/sessions", "create_nodejs_session", Scope::nodejs, kNone, Unknown::ignore, "Create a session",
     bind<nodejs_create_session, NodeJSCreateSessionResponse>(), kDefaultBodyLimit, kVersion},
    {Method::get, "/v1/nodejs/sessions", "list_nodejs_sessions", Scope::nodejs, kNone, Unknown::ignore, "List the sessions",
     bind<nodejs_list_sessions, NodeJSSessionListResponse>(), kDefaultBodyLimit, kVersion},
    {Method::get, "/v1/nodejs/sessions/{session_id}", "get_nodejs_session", Scope::nodejs, kNone, Unknown::ignore, "One session",
     bind<nodejs_get_session, NodeJSSessionResponse>(), kDefaultBodyLimit, kVersion},
    {Method::patch, "/v1/nodejs/sessions/{session_id}", "update_nodejs_session", Scope::nodejs, kNone, Unknown::ignore,
     "Change a session's idle time or directory", bind<nodejs_update_session, NodeJSUpdateSessionResponse>(), kDefaultBodyLimit,
     kVersion},
    {Method::del, "/v1/nodejs/sessions/{session_id}", "delete_nodejs_session", Scope::nodejs, kNone, Unknown::ignore,
     "End a session", bind<nodejs_delete_session, NodeJSDeleteSessionResponse>(), kDefaultBodyLimit, kVersion},
};

}  // namespace

Area nodejs_routes() { return kNodejs; }

}  // namespace caisson::routes
