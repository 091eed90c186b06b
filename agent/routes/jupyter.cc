// /v1/jupyter: Python cells in notebook kernels. A cell that fails or takes too long is 200 with success:true and its status,
// like a command that exits with 1; a cell that could not be run is success:false. Deleting an unknown session is 404 in the
// envelope.
#include "agent/routes/jupyter_types.h"
#include "agent/routes/table.h"
#include "agent/services/notebook/jupyter_service.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::JupyterService;

constexpr double kNanosecond = 1e-9;

// The answer for a cell that was not run; with a hint if its kernel is not installed.
Result<http::Response> not_run(const JupyterService& service, const std::string& kernel_name, Error error) {
  auto hint = service.hint_for(kernel_name);
  if (!hint) return std::unexpected(std::move(error));
  return http::fail(error.text(), nullptr, std::move(hint));
}

task<http::Response> jupyter_execute(Call call, JupyterExecuteRequest body) {
  JupyterExecuteResponse answer{.code = body.code};
  JupyterService::Request request{.code = std::move(body.code), .timeout_seconds = static_cast<int>(body.timeout.value_or(30))};
  request.target = {body.session_id.value_or(""), body.kernel_name.value_or(""), body.cwd.value_or("")};
  request.gone = [peer = call.request.peer] { return peer->gone; };
  const std::string kernel_name = request.target.kernel_name;
  auto done = co_await call.services.workspace->jupyter.execute(std::move(request));
  if (!done) co_return not_run(call.services.workspace->jupyter, kernel_name, std::move(done).error());
  JupyterService::Answer& ran = *done;
  answer.kernel_name = std::move(ran.kernel_name);
  answer.session_id = std::move(ran.session_id);
  answer.status = std::move(ran.result.status);
  answer.execution_count = ran.result.execution_count;
  answer.outputs = std::move(ran.result.outputs);
  answer.end = std::move(ran.result.end);
  if (!ran.result.msg_id.empty()) answer.msg_id = std::move(ran.result.msg_id);
  const bool quiet = ran.result.hint.empty();
  co_return http::ok(encode(answer), "Operation successful", quiet ? std::nullopt : std::optional(ran.result.hint));
}

task<http::Response> jupyter_info(Call call) {
  JupyterService& service = call.services.workspace->jupyter;
  JupyterInfoResponse info{.session_timeout_seconds = service.config().jupyter_idle.count(),
                           .max_sessions = static_cast<std::int64_t>(service.config().max_jupyter_sessions)};
  info.active_sessions = static_cast<std::int64_t>(service.sessions().size());
  info.description = "Python kernels (ipykernel), each in a confined session of its own";
  auto found = co_await service.catalog();
  if (!found) {  // this answer explains why nothing runs
    info.default_kernel = "python3";
    info.kernel_detection = found.error().text();
    co_return http::ok(encode(info));
  }
  info.default_kernel = service.default_name(*found);
  info.available_kernels = {"python3"};
  for (const services::KernelSpec& kernel : found->kernels) info.available_kernels.push_back(kernel.name);
  info.kernel_detection = "interpreters with ipykernel at /usr/bin/python3 and /opt/python/*/bin/python3";
  const std::string& wanted = service.config().python_version;
  if (!wanted.empty() && wanted != info.default_kernel)
    info.kernel_detection += "; PYTHON_VERSION names one that is not installed";
  co_return http::ok(encode(info));
}

task<http::Response> jupyter_sessions(Call call) {
  ActiveJupyterSessions list;
  const std::int64_t now = sys::realtime_ns();
  for (const auto& s : call.services.workspace->jupyter.sessions())
    list.sessions[s->id] = {.kernel_name = s->kernel_name,
                            .last_used = static_cast<double>(s->last_used_ns) * kNanosecond,
                            .age_seconds = (now - s->created_ns) / 1'000'000'000};
  co_return http::ok(encode(list));
}

task<http::Response> jupyter_create_session(Call call, JupyterCreateSessionRequest body) {
  JupyterService& service = call.services.workspace->jupyter;
  const bool known = service.find(body.session_id.value_or("")) != nullptr;
  JupyterService::Target target{body.session_id.value_or(""), body.kernel_name.value_or(""), body.cwd.value_or("")};
  const std::string kernel_name = target.kernel_name;
  const auto created = co_await service.create(std::move(target));
  if (!created) co_return not_run(service, kernel_name, created.error());
  const JupyterService::SessionPtr& s = *created;
  const JupyterCreateSessionResponse answer{s->id, s->kernel_name, known ? "Session exists" : "Session created"};
  co_return http::ok(encode(answer));
}

task<http::Response> jupyter_delete_session(Call call) {
  const auto s = call.services.workspace->jupyter.find(std::string(call.request.param("session_id")));
  if (!s) co_return http::session_not_found();
  CO_TRY(co_await call.services.workspace->jupyter.close(s, "deleted by the client"));
  co_return http::ok(nullptr, "Session deleted");
}

task<http::Response> jupyter_delete_sessions(Call call) {
  const auto all = call.services.workspace->jupyter.sessions();
  for (const auto& s : all) CO_TRY(co_await call.services.workspace->jupyter.close(s, "deleted by the client"));
  co_return http::ok(nullptr, "Deleted " + std::to_string(all.size()) + " sessions");
}

using http::Method;

constexpr Route kJupyter[] = {
    {Method::post, "/v1/jupyter/execute", "jupyter_execute_code", Scope::jupyter, kNone, Unknown::ignore,
     "Run Python in a kernel", bind<jupyter_execute, JupyterExecuteResponse>()},
    {Method::get, "/v1/jupyter/info", "get_jupyter_info", Scope::jupyter, kNone, Unknown::ignore, "The installed kernels",
     bind<jupyter_info, JupyterInfoResponse>()},
    {Method::get, "/v1/jupyter/sessions", "list_jupyter_sessions", Scope::jupyter, kNone, Unknown::ignore, "List the sessions",
     bind<jupyter_sessions, ActiveJupyterSessions>()},
    {Method::del, "/v1/jupyter/sessions", "delete_jupyter_sessions", Scope::jupyter, kNone, Unknown::ignore,
     "End all sessions with their kernels", bind<jupyter_delete_sessions>()},
    {Method::del, "/v1/jupyter/sessions/{session_id}", "delete_jupyter_session", Scope::jupyter, kNone, Unknown::ignore,
     "End a session with its kernel", bind<jupyter_delete_session>()},
    {Method::post, "/v1/jupyter/sessions/create", "create_jupyter_session", Scope::jupyter, kNone, Unknown::ignore,
     "Start a kernel in a session", bind<jupyter_create_session, JupyterCreateSessionResponse>()},
};

}  // namespace

Area jupyter_routes() { return kJupyter; }

}  // namespace caisson::routes
