#include "agent/mcp/methods.h"

#include "agent/http/failure.h"
#include "agent/mcp/call_record.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kInstructions =
    "A computer of its own for an agent: bash, Python and JavaScript, files, and a browser on a screen. Commands run confined: "
    "what the sandbox refuses stays refused, whoever asks. Files in the home last as long as the workspace.";
constexpr std::int64_t kFreshMs = 60'000;

struct Asking {
  Call call;
  Client client;
  Message message;
};

std::unexpected<Failure> invalid_params(std::string what) {
  return std::unexpected(Failure{.code = ErrorCode::invalid_params, .text = "Invalid params: " + std::move(what)});
}

json::Value server_info() { return {{"name", "caisson"}, {"title", "Caisson"}, {"version", CAISSON_VERSION}}; }

// What servers offer is not known before they run, and some may be added at any time: everything is promised, and lists are empty
// where nothing is offered.
json::Value capabilities(const Client& client) {
  json::Value out = json::Value::object();
  out["tools"]["listChanged"] = true;
  out["prompts"]["listChanged"] = true;
  out["resources"]["listChanged"] = true;
  out["resources"]["subscribe"] = true;
  out["completions"] = json::Value::object();
  if (!is_stateless(client.revision)) out["logging"] = json::Value::object();
  return out;
}

using Reply = asio::awaitable<Or<json::Value>>;

Reply initialize(Asking asking) {
  const auto asked = asking.message.params.find("protocolVersion");
  if (asked == asking.message.params.end() || !asked->is_string()) co_return invalid_params("protocolVersion must be text");
  co_return json::Value{{"protocolVersion", revision_name(negotiated(asked->get_ref<const std::string&>()))},
                        {"capabilities", capabilities(asking.client)},
                        {"serverInfo", server_info()},
                        {"instructions", kInstructions}};
}

Reply discover(Asking asking) {
  co_return json::Value{
      {"supportedVersions", kRevisions}, {"capabilities", capabilities(asking.client)}, {"instructions", kInstructions}};
}

Reply ping(Asking) { co_return json::Value::object(); }

// All of them are one page.
template <services::Kind kind>
Reply list_items(Asking asking) {
  if (asking.message.params.contains("cursor")) co_return invalid_params("there is no such cursor");
  const Filter filter = asking.client.filter;
  const auth::Scopes scopes = asking.client.scopes;
  json::Value items = co_await listed_of_servers(std::move(asking.client), kind);
  if (kind == services::Kind::tools) {
    json::Value own = listed(filter, scopes);
    for (json::Value& item : items) own.push_back(std::move(item));
    items = std::move(own);
  }
  json::Value result = json::Value::object();
  result[std::string(services::row_of(kind).member)] = std::move(items);
  co_return result;
}

Reply follow_resource(Asking asking) { co_return co_await follow(std::move(asking.client), std::move(asking.message)); }
Reply set_log_level(Asking asking) { co_return co_await set_level(std::move(asking.client), std::move(asking.message.params)); }

Reply call_a_tool(Asking asking) {
  const auto name = asking.message.params.find("name");
  if (name == asking.message.params.end() || !name->is_string()) co_return invalid_params("name must be text");
  json::Value arguments = json::Value::object();
  if (const auto given = asking.message.params.find("arguments"); given != asking.message.params.end() && !given->is_null()) {
    if (!given->is_object()) co_return invalid_params("arguments must be an object");
    arguments = std::move(*given);
  }
  if (asking.message.params.contains("task")) co_return invalid_params("tools are not run as tasks");
  const Tool* tool = find_tool(name->get_ref<const std::string&>(), asking.client.filter, asking.client.scopes);
  if (tool == nullptr) co_return invalid_params("Unknown tool: " + quote(name->get_ref<const std::string&>()));
  Or<Outcome> outcome = co_await call_tool(std::move(asking.call), *tool, std::move(arguments));
  if (!outcome) co_return std::unexpected(std::move(outcome).error());
  co_return encode(std::move(*outcome));
}

struct Method {
  std::string_view name;
  bool stateful, stateless;  // in which revisions it is
  bool fresh;                // its result says for how long it may be kept
  Reply (*run)(Asking);      // nullptr: it is forwarded
};
constexpr Method kMethods[] = {
    {"initialize", true, false, false, initialize},
    {"ping", true, false, false, ping},
    {"server/discover", false, true, true, discover},
    {"tools/list", true, true, true, list_items<services::Kind::tools>},
    {"tools/call", true, true, false, call_a_tool},
    {"prompts/list", true, true, true, list_items<services::Kind::prompts>},
    {"prompts/get", true, true, false, nullptr},
    {"resources/list", true, true, true, list_items<services::Kind::resources>},
    {"resources/templates/list", true, true, true, list_items<services::Kind::templates>},
    {"resources/read", true, true, true, nullptr},
    {"resources/subscribe", true, false, false, follow_resource},
    {"resources/unsubscribe", true, false, false, follow_resource},
    {"completion/complete", true, true, false, nullptr},
    {"logging/setLevel", true, false, false, set_log_level},
};

}  // namespace

json::Value listed(const Filter& filter, const auth::Scopes& scopes) {
  json::Value out = json::Value::array();
  for (const Server& server : kServers)
    for (const Tool& tool : server.tools())
      if (filter.admits_server(server.name, {}) && filter.admits_tool(tool.name) && filter.finds(tool.name, tool.doc) &&
          permits(scopes, tool))
        out.push_back(describe(tool));
  return out;
}

asio::awaitable<Or<Outcome>> call_tool(Call call, const Tool& tool, json::Value arguments) {
  const std::string id = call.request.id;
  CallRecord record(call.services.server, call.services.workspace->name, call.principal.name, std::string(server_of(tool)),
                    std::string(tool.name), arguments);
  Result<Outcome> done = co_await tool.handler.run(std::move(call), std::move(arguments));
  if (done) record.ended(done->is_error);
  if (done) co_return std::move(*done);
  if (done.error().code != Code::internal) co_return error_outcome(done.error().text());
  const http::Response told = http::internal_failure(done.error().text(), id);
  co_return std::unexpected(Failure{.code = ErrorCode::internal, .text = "Internal error; request " + id, .status = told.status});
}

asio::awaitable<Or<json::Value>> answer(Call call, Client client, Message message) {
  const Revision revision = client.revision;
  const bool stateless = is_stateless(revision);
  const auto method = std::ranges::find(kMethods, message.method, &Method::name);
  if (method == std::end(kMethods) || !(stateless ? method->stateless : method->stateful) || method->run == nullptr)
    co_return std::unexpected(Failure{.code = ErrorCode::method_not_found,
                                      .text = "Method not found: " + quote(message.method),
                                      .status = stateless ? 404 : 200});
  std::string name = message.method;
  Asking asking{std::move(call), std::move(client), std::move(message)};
  Or<json::Value> result = co_await method->run(std::move(asking));
  if (result) complete(*result, revision, name);
  co_return result;
}

void complete(json::Value& result, Revision revision, std::string_view name) {
  if (!is_stateless(revision)) {
    for (const char* member : {"resultType", "ttlMs", "cacheScope"}) result.erase(member);
    return;
  }
  if (!result.contains("resultType")) result["resultType"] = "complete";
  if (!result["_meta"].is_object()) result["_meta"] = json::Value::object();
  result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
  const auto method = std::ranges::find(kMethods, name, &Method::name);
  if (method == std::end(kMethods) || !method->fresh || result["resultType"] != "complete") return;
  if (!result.contains("ttlMs")) result["ttlMs"] = kFreshMs;
  result["cacheScope"] = "private";  // the list is that of the credential
}

}  // namespace caisson::mcp
