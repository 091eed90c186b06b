// /v1/workspaces. A request names a workspace with X-Caisson-Workspace; these routes do not read it. Unlike a failing tool, a
// failure here has an HTTP status of its own.
#include "agent/services/workspace/workspaces.h"
#include "agent/bridge/launcher_client.h"
#include "agent/routes/refusals.h"
#include "agent/routes/table.h"
#include "agent/routes/workspaces_types.h"

namespace caisson::routes {
namespace {

http::Response workspace_not_found() { return http::error_response(404, "Workspace not found"); }

Result<http::Response> workspace_refusal(const Error& error) {
  if (error.code == Code::not_found) return workspace_not_found();
  return refusal(error);
}

// Leaves out the launcher's internals, and figures of the home that belong to observations.
json::Value shown(json::Value workspace, const bridge::LauncherClient& launcher) {
  if (!workspace.contains("home")) workspace["home"] = launcher.greeting().home;
  workspace.erase("uid");
  const auto disk = workspace.find("disk");
  if (disk == workspace.end()) return workspace;
  for (const char* own : {"total_bytes", "free_bytes", "total_inodes"}) disk->erase(own);
  if (!disk->contains("limit")) workspace.erase(disk);
  return workspace;
}

task<http::Response> list(Call call) {
  CO_TRY_ASSIGN(const std::vector<json::Value> all, co_await call.services.launcher->workspace_list());
  json::Value out = json::Value::array();
  const std::optional<std::string>& own = call.principal.bounds.workspace;
  for (const json::Value& workspace : all)
    if (!own || workspace.value("name", "") == *own) out.push_back(shown(workspace, *call.services.launcher));
  json::Value data = {{"workspaces", std::move(out)}};
  co_return http::ok(std::move(data));
}

task<http::Response> create(Call call, WorkspaceCreate body) {
  if (call.services.workspaces != nullptr && call.services.workspaces->resetting(body.name))
    co_return http::error_response(409, "workspace " + quote(body.name) + " is being reset");
  auto made = co_await call.services.launcher->workspace_create(encode(body));
  if (!made) co_return workspace_refusal(made.error());
  co_return http::ok(shown(std::move(*made), *call.services.launcher), "Workspace created");
}

task<http::Response> reset(Call call) {
  auto made = co_await call.services.workspaces->reset(std::string(call.request.param("name")));
  if (!made) co_return workspace_refusal(made.error());
  co_return http::ok(shown(std::move(*made), *call.services.launcher), "Workspace reset");
}

task<http::Response> one(Call call) {
  const std::string name(call.request.param("name"));
  CO_TRY_ASSIGN(const std::vector<json::Value> all, co_await call.services.launcher->workspace_list());
  for (const json::Value& workspace : all)
    if (workspace.value("name", "") == name) co_return http::ok(shown(workspace, *call.services.launcher));
  co_return workspace_not_found();
}

task<http::Response> destroy(Call call) {
  std::string name(call.request.param("name"));
  // Its hooks run while its files exist. Their failures are in the audit log and do not prevent its end.
  if (name != "default")
    if (const auto workspace = co_await call.services.workspaces->find(name)) {
      (void)co_await call.services.workspaces->wake(*workspace);
      (void)co_await (*workspace)->hooks.end();
    }
  const Status ended = co_await call.services.launcher->workspace_destroy(std::move(name), "deleted by the client");
  if (!ended) co_return workspace_refusal(ended.error());
  co_return http::ok(nullptr, "Workspace deleted");
}

task<http::Response> pause(Call call) {
  const Status done = co_await call.services.workspaces->pause(std::string(call.request.param("name")));
  if (!done) co_return workspace_refusal(done.error());
  co_return co_await one(call);
}

task<http::Response> resume(Call call) {
  auto workspace = co_await call.services.workspaces->find(std::string(call.request.param("name")));
  if (!workspace) co_return workspace_refusal(workspace.error());
  const Status done = co_await call.services.workspaces->wake(*workspace);
  if (!done) co_return workspace_refusal(done.error());
  co_return co_await one(call);
}

using http::Method;

constexpr Route kWorkspaces[] = {
    {Method::get, "/v1/workspaces", "list_workspaces", Scope::workspaces, kNone, Unknown::ignore, "List the workspaces",
     bind<list, WorkspaceList>()},
    {Method::post, "/v1/workspaces", "create_workspace", Scope::workspaces, kConflict, Unknown::reject,
     "Create a workspace, to be named by X-Caisson-Workspace", bind<create, WorkspaceInfo>()},
    {Method::get, "/v1/workspaces/{name}", "get_workspace", Scope::workspaces, kNone, Unknown::ignore, "Describe a workspace",
     bind<one, WorkspaceInfo>()},
    {Method::post, "/v1/workspaces/{name}/reset", "reset_workspace", Scope::workspaces, kConflict, Unknown::ignore,
     "End everything in a workspace, including files and hooks, and make it anew with its first settings",
     bind<reset, WorkspaceInfo>()},
    {Method::post, "/v1/workspaces/{name}/pause", "pause_workspace", Scope::workspaces, kNone, Unknown::ignore,
     "Stop all that runs in a workspace; the next request to it lets it go on", bind<pause, WorkspaceInfo>()},
    {Method::post, "/v1/workspaces/{name}/resume", "resume_workspace", Scope::workspaces, kNone, Unknown::ignore,
     "Let a paused workspace go on", bind<resume, WorkspaceInfo>()},
    {Method::del, "/v1/workspaces/{name}", "delete_workspace", Scope::workspaces, kNone, Unknown::ignore,
     "End a workspace with its sessions and files; answers when nothing is left", bind<destroy>()},
};

}  // namespace

Area workspace_routes() { return kWorkspaces; }

}  // namespace caisson::routes
