#include "agent/derive/openapi.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <gtest/gtest.h>

#include "agent/routes/table.h"

namespace caisson {
namespace {

using routes::Route;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

TEST(OpenApi, ContainsEveryRoute) {
  const json::Value document = derive::openapi(routes::all_routes());
  EXPECT_EQ(document["openapi"], "3.1.0");
  for (const Route* route : routes::all_routes()) {
    if ((route->flags & routes::kHidden) != 0) continue;
    const json::Value& operation = document.at("paths").at(std::string(route->path)).at(lower(http::method_name(route->method)));
    EXPECT_EQ(operation.at("operationId"), route->operation_id);
    EXPECT_FALSE(operation.at("summary").get<std::string>().empty()) << route->path;
    EXPECT_EQ(operation.contains("requestBody"), route->endpoint.describe_body != nullptr) << route->path;
  }
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const json::Value document = derive::openapi(routes::all_routes());
  for (const auto& [pointer, value] : document.flatten().items())
    if (pointer.ends_with("/$ref"))
      EXPECT_TRUE(document.contains(json::Value::json_pointer(value.get<std::string>().substr(1)))) << value;
}

TEST(OpenApi, OnlyTheProbesAndThirdPartiesFilesArePublic) {
  std::set<std::string_view> open;
  for (const Route* route : routes::all_routes())
    if ((route->flags & routes::kPublic) != 0) open.insert(route->path);
  EXPECT_EQ(open, (std::set<std::string_view>{
                      "/v1/ping", "/healthz", "/readyz", "/static/{package}/{file}", "/.well-known/oauth-protected-resource",
                      "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/v1/mcp"}));
}

TEST(OpenApi, KeysAreDeclared) {
  const json::Value document = derive::openapi(routes::all_routes());
  EXPECT_EQ(document["components"]["securitySchemes"].size(), 4u) << "header, bearer, query, ticket";
  EXPECT_EQ(document["security"].size(), 4u);
  EXPECT_EQ(document["paths"]["/v1/ping"]["get"]["security"], json::Value::array());
  EXPECT_TRUE(document["paths"]["/v1/sandbox"]["get"]["responses"].contains("401"));
}

TEST(RouteTable, EveryFlagOfARowIsKnown) {
  for (const Route* route : routes::all_routes()) EXPECT_EQ(route->flags & ~routes::all_flags(), 0U) << route->path;
}

TEST(RouteTable, IdsAndPathsAreUnique) {
  std::set<std::pair<http::Method, std::string_view>> paths;
  std::set<std::string_view> ids;
  for (const Route* route : routes::all_routes()) {
    EXPECT_TRUE(paths.insert({route->method, route->path}).second) << route->path;
    EXPECT_TRUE(ids.insert(route->operation_id).second) << route->operation_id;
    EXPECT_TRUE((route->endpoint.handler != nullptr) != (route->endpoint.websocket != nullptr)) << route->path;
  }
}

// The contract's operations of this area: path, method and operationId.
TEST(RouteTable, ServesTheContractsOperations) {
  const std::set<std::string> wanted = {"GET /v1/sandbox get_sandbox_context_v1_sandbox_get",
                                        "GET /v1/sandbox/packages/python python_packages_v1_sandbox_packages_python_get",
                                        "GET /v1/sandbox/packages/nodejs nodejs_packages_v1_sandbox_packages_nodejs_get",
                                        "POST /v1/sandbox/hooks register_hook_v1_sandbox_hooks_post",
                                        "GET /v1/sandbox/hooks list_hooks_v1_sandbox_hooks_get",
                                        "DELETE /v1/sandbox/hooks/{name} remove_hook_v1_sandbox_hooks__name__delete",
                                        "GET /v1/sandbox/observe/status observe_status_v1_sandbox_observe_status_get",
                                        "GET /v1/sandbox/observe/live observe_live_v1_sandbox_observe_live_get",
                                        "POST /v1/sandbox/observe/start observe_start_v1_sandbox_observe_start_post",
                                        "POST /v1/sandbox/observe/stop observe_stop_v1_sandbox_observe_stop_post",
                                        "POST /v1/sandbox/observe/export observe_export_v1_sandbox_observe_export_post",
                                        "GET /v1/sandbox/observe/reports observe_reports_v1_sandbox_observe_reports_get",
                                        "GET /v1/sandbox/observe/reports/{report_id} "
                                        "observe_report_download_v1_sandbox_observe_reports__report_id__get",
                                        "DELETE /v1/sandbox/observe/reports/{report_id} "
                                        "observe_report_delete_v1_sandbox_observe_reports__report_id__delete",
                                        "POST /v1/bash/exec exec",
                                        "POST /v1/bash/output output",
                                        "POST /v1/bash/write write",
                                        "POST /v1/bash/kill kill",
                                        "GET /v1/bash/sessions sessions",
                                        "POST /v1/bash/sessions/create create_session",
                                        "POST /v1/bash/sessions/{session_id}/close close_session",
                                        "POST /v1/shell/exec exec_command_v1_shell_exec_post",
                                        "POST /v1/shell/view view_shell_v1_shell_view_post",
                                        "POST /v1/shell/wait wait_for_process",
                                        "POST /v1/shell/write write_to_process",
                                        "POST /v1/shell/kill kill_shell_process",
                                        "POST /v1/shell/sessions/create create_shell_session",
                                        "POST /v1/shell/sessions/update update_shell_session",
                                        "GET /v1/shell/terminal-url get_terminal_url",
                                        "GET /v1/shell/sessions/stats get_shell_session_stats",
                                        "GET /v1/shell/sessions list_shell_sessions",
                                        "DELETE /v1/shell/sessions cleanup_all_sessions",
                                        "DELETE /v1/shell/sessions/{session_id} cleanup_shell_session"};
  std::set<std::string> served;
  for (const Route* route : routes::all_routes())
    served.insert(std::string(http::method_name(route->method)) + " " + std::string(route->path) + " " +
                  std::string(route->operation_id));
  for (const std::string& operation : wanted) EXPECT_TRUE(served.contains(operation)) << operation;
}

}  // namespace
}  // namespace caisson
