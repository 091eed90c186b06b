#include "agent/mcp/methods.h"

#include "agent/http/failure.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kInstructions =
    "A computer of its own for an agent: bash, Python and JavaScript, files, and a browser on a screen. Commands run confined: "
    "what the sandbox refuses stays refused, whoever asks. Files in the home last as long as the workspace.";
constexpr std::int64_t kFreshMs = 60'000;

struct Asking {
  Call call;
  Revision revision;
  json::Value params;
};

std::unexpected<Failure> invalid_params(std::string what) {
  return std::unexpected(Failure{.code = ErrorCode::invalid_params, .text = "Invalid params: " + std::move(what)});
}

json::Value server_info() { return {{"name", "caisson"}, {"title", "Caisson"}, {"version", CAISSON_VERSION}}; }
json::Value capabilities() { return {{"tools", {{"listChanged", false}}}}; }

using Reply = asio::awaitable<Or<json::Value>>;

Reply initialize(Asking asking) {
  const auto asked = asking.params.find("protocolVersion");
  if (asked == asking.params.end() || !asked->is_string()) co_return invalid_params("protocolVersion must be text");
  co_return json::Value{{"protocolVersion", revision_name(negotiated(asked->get_ref<const std::string&>()))},
                        {"capabilities", capabilities()},
                        {"serverInfo", server_info()},
                        {"instructions", kInstructions}};
}

Reply discover(Asking) {
  co_return json::Value{{"supportedVersions", kRevisions}, {"capabilities", capabilities()}, {"instructions", kInstructions}};
}

Reply ping(Asking) { co_return json::Value::object(); }

// All of them are one page.
Reply list_tools(Asking asking) {
  if (asking.params.contains("cursor")) co_return invalid_params("there is no such cursor");
  json::Value result = json::Value::object();
  result["tools"] = listed(Filter(asking.call.request), asking.call.principal.bounds.scopes);
  co_return result;
}

Reply call_a_tool(Asking asking) {
  const auto name = asking.params.find("name");
  if (name == asking.params.end() || !name->is_string()) co_return invalid_params("name must be text");
  json::Value arguments = json::Value::object();
  if (const auto given = asking.params.find("arguments"); given != asking.params.end() && !given->is_null()) {
    if (!given->is_object()) co_return invalid_params("arguments must be an object");
    arguments = std::move(*given);
  }
  if (asking.params.contains("task")) co_return invalid_params("tools are not run as tasks");
  const Tool* tool =
      find_tool(name->get_ref<const std::string&>(), Filter(asking.call.request), asking.call.principal.bounds.scopes);
  if (tool == nullptr) co_return invalid_params("Unknown tool: " + quote(name->get_ref<const std::string&>()));
  Or<Outcome> outcome = co_await call_tool(std::move(asking.call), *tool, std::move(arguments));
  if (!outcome) co_return std::unexpected(std::move(outcome).error());
  co_return encode(std::move(*outcome));
}

struct Method {
  std::string_view name;
  bool stateful, stateless;  // in which revisions it is
  bool fresh;                // its result says for how long it may be kept
  Reply (*run)(Asking);
};
constexpr Method kMethods[] = {
    {"initialize", true, false, false, initialize},   {"ping", true, false, false, ping},
    {"server/discover", false, true, true, discover}, {"tools/list", true, true, true, list_tools},
    {"tools/call", true, true, false, call_a_tool},
};

}  // namespace

json::Value listed(const Filter& filter, const auth::Scopes& scopes) {
  json::Value out = json::Value::array();
  for (const Server& server : kServers)
    for (const Tool& tool : server.tools())
      if (filter.lists(server, tool) && permits(scopes, tool)) out.push_back(describe(tool));
  return out;
}

asio::awaitable<Or<Outcome>> call_tool(Call call, const Tool& tool, json::Value arguments) {
  const std::string id = call.request.id;
  Result<Outcome> done = co_await tool.handler.run(std::move(call), std::move(arguments));
  if (done) co_return std::move(*done);
  if (done.error().code != Code::internal) co_return error_outcome(done.error().text());
  const http::Response told = http::internal_failure(done.error().text(), id);
  co_return std::unexpected(Failure{.code = ErrorCode::internal, .text = "Internal error; request " + id, .status = told.status});
}

asio::awaitable<Or<json::Value>> answer(Call call, Revision revision, Message message) {
  const bool stateless = is_stateless(revision);
  const auto method = std::ranges::find(kMethods, message.method, &Method::name);
  if (method == std::end(kMethods) || !(stateless ? method->stateless : method->stateful))
    co_return std::unexpected(Failure{.code = ErrorCode::method_not_found,
                                      .text = "Method not found: " + quote(message.method),
                                      .status = stateless ? 404 : 200});
  Asking asking{std::move(call), revision, std::move(message.params)};
  Or<json::Value> result = co_await method->run(std::move(asking));
  if (!result || !stateless) co_return result;
  (*result)["resultType"] = "complete";
  (*result)["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
  if (method->fresh) {
    (*result)["ttlMs"] = kFreshMs;
    (*result)["cacheScope"] = "private";  // the list is that of the credential
  }
  co_return result;
}

}  // namespace caisson::mcp
