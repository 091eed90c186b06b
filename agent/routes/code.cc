// /v1/code: Python and JavaScript through one operation. A run without state has a session of its own. A failing program is
// success:true with its exit code; a run that could not start is success:false.
#include "agent/routes/code_types.h"
#include "agent/routes/table.h"
#include "agent/services/code/code_service.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::Language;

constexpr std::int64_t kDefaultTimeout = 30;

CodeExecuteResponse response_of(const std::string& language, std::string code, services::CodeOutcome outcome) {
  CodeExecuteResponse out{.language = language, .status = std::move(outcome.status), .outputs = std::move(outcome.outputs)};
  out.code = std::move(code);
  out.stdout_text = std::move(outcome.out);
  out.stderr_text = std::move(outcome.err);
  out.exit_code = outcome.exit_code;
  if (outcome.error) out.traceback = std::move(outcome.error->traceback);
  if (!outcome.session_id.empty()) out.session_id = std::move(outcome.session_id);
  out.end = std::move(outcome.end);
  return out;
}

task<http::Response> code_execute(Call call, CodeExecuteRequest body) {
  services::CodeService& service = call.services.workspace->code;
  services::CodeJob job{.language = body.language == "python" ? Language::python : Language::javascript};
  CO_TRY_ASSIGN(const auto inventory, co_await service.inventory());
  auto chosen = inventory->choose(job.language, call.request.query_value("version").value_or(""));
  if (!chosen && job.language == Language::python)
    co_return http::fail(chosen.error().text(), nullptr, std::string(services::kMorePythons));
  CO_TRY_ASSIGN(job.interpreter, std::move(chosen));
  job.code = body.code;
  job.cwd = body.cwd.value_or("");
  job.timeout_s = body.timeout.value_or(kDefaultTimeout);
  job.client_gone = std::shared_ptr<const bool>(call.request.peer, &call.request.peer->gone);
  const std::string id = body.session_id.value_or("");
  auto ran =
      body.stateful || !id.empty() ? service.stateful(job.language).execute(id, std::move(job)) : service.run(std::move(job));
  CO_TRY_ASSIGN(services::CodeOutcome outcome, co_await std::move(ran));
  const std::string message = outcome.status == "timeout" ? "The time was over" : "Operation successful";
  std::optional<std::string> hint;
  if (!outcome.hint.empty()) hint = outcome.hint;
  co_return http::ok(encode(response_of(body.language, std::move(body.code), std::move(outcome))), message, hint);
}

task<http::Response> code_info(Call call) {
  CO_TRY_ASSIGN(const auto inventory, co_await call.services.workspace->code.inventory());
  CodeInfoResponse out;
  for (const Language language : {Language::python, Language::javascript}) {
    const auto& versions = inventory->of(language);
    CodeLanguageInfo info{.language = std::string(services::language_name(language))};
    info.description = language == Language::python ? "CPython" : "Node.js";
    info.description += versions.empty() ? ": not installed" : ", each run in a confined session of its own";
    json::Value names = json::Value::array();
    for (const auto& one : versions) names.push_back(services::version_name(language, one.version));
    info.details["versions"] = std::move(names);
    if (!versions.empty()) info.runtime_version = versions.front().version;
    out.languages.push_back(std::move(info));
  }
  co_return http::ok(encode(out));
}

using http::Method;

// Our own: the contract has no way to ask.
constexpr Parameter kVersion[] = {
    {"version", "string", "Version of the interpreter, such as python3.12 or node22", false, {}, "null"}};

constexpr Route kCode[] = {
    {Method::post, "/v1/code/execute", "execute_code_v1_code_execute_post", Scope::code, kNone, Unknown::ignore,
     "Run Python or JavaScript", bind<code_execute, CodeExecuteResponse>(), kDefaultBodyLimit, kVersion},
    {Method::get, "/v1/code/info", "code_info_v1_code_info_get", Scope::code, kNone, Unknown::ignore,
     "Languages and their versions", bind<code_info, CodeInfoResponse>()},
};

}  // namespace

Area code_routes() { return kCode; }

}  // namespace caisson::routes
