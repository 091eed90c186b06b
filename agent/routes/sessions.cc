// The launcher's sessions behind this API, with their use and their limits.
#include "agent/bridge/launcher_client.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> list_sessions(Call call) {
  std::string after(call.request.query_value("after").value_or(""));
  CO_TRY_ASSIGN(json::Value list, co_await call.services.launcher->session_list(std::move(after)));
  json::Value data = {{"sessions", std::move(list["sessions"])}};
  if (list.contains("next")) data["next"] = std::move(list["next"]);
  co_return http::ok(std::move(data), "Sessions listed");
}

constexpr Parameter kAfter[] = {{"after", "string", "`next` of the answer before"}};

constexpr Route kSessions[] = {
    {http::Method::get, "/v1/sessions", "list_confined_sessions", Scope::sandbox, kWhole, Unknown::ignore,
     "Every living session with its domain, tier, limits and present use", bind<list_sessions>(), kDefaultBodyLimit, kAfter},
};

}  // namespace

Area sessions_routes() { return kSessions; }

}  // namespace caisson::routes
