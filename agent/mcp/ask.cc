#include "agent/mcp/ask.h"

#include "agent/routes/router.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::mcp {
namespace {

const routes::Router& router() {
  static const routes::Router made(routes::all_routes());
  return made;
}

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    out.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return out;
}

}  // namespace

task<http::Response> ask(Call call, Asked asked) {
  routes::Match match = router().find(asked.method, segments_of(asked.path));
  if (match.route == nullptr) co_return fail(Code::internal, "no operation has the path " + asked.path);
  const routes::Route& route = *match.route;
  if (!routes::permits(call.principal.bounds.scopes, route))
    co_return http::error_response(
        403, "The credential does not permit this: it needs the scope " + std::string(routes::scope_name(route.scope)));
  if (auto taken = routes::refuse_taken(route, *call.services.workspace)) co_return std::move(*taken);
  http::Request request;
  request.method = asked.method;
  request.verb = http::method_name(asked.method);
  request.path = request.target = std::move(asked.path);
  request.query = std::move(asked.query);
  request.params = std::move(match.params);
  if (!asked.body.is_null()) request.body = json::dump(asked.body);
  request.remote = call.request.remote;
  request.connected_from = call.request.connected_from;
  request.host = call.request.host;
  request.scheme = call.request.scheme;
  request.id = call.request.id;
  request.span = call.request.span;
  request.peer = call.request.peer;
  const std::string id = request.id;
  Call inner{call.services, std::move(request), route, call.writer, std::move(call.principal)};
  auto result = co_await route.endpoint.handler(std::move(inner));
  co_return routes::to_response(std::move(result), id);
}

Told told_of(const http::Response& response) {
  Told out;
  const json::Value value = response.values ? *response.values : json::Value::parse(response.body, nullptr, false);
  if (!value.is_object()) return {false, "the answer is no object", nullptr};
  if (const auto detail = value.find("detail"); detail != value.end() && detail->is_array()) {
    for (const json::Value& issue : *detail) {
      if (!out.message.empty()) out.message += "; ";
      const json::Value& loc = issue["loc"];
      if (loc.size() > 1) out.message += (loc[1].is_string() ? loc[1].get<std::string>() : json::dump(loc[1])) + ": ";
      out.message += issue["msg"].get<std::string>();
    }
    return out;
  }
  const auto text = [&value](const char* name) {
    const auto found = value.find(name);
    return found != value.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  out.success = value.value("success", false);
  out.message = text("message");
  if (const std::string hint = text("hint"); !hint.empty()) out.message += (out.message.empty() ? "" : ". ") + hint;
  out.data = value.contains("data") ? value["data"] : value;
  return out;
}

task<Told> ask_told(Call call, Asked asked) {
  CO_TRY_ASSIGN(const http::Response response, co_await ask(std::move(call), std::move(asked)));
  co_return told_of(response);
}

}  // namespace caisson::mcp
