#include "agent/mcp/forward.h"

#include <algorithm>
#include <set>

#include "agent/mcp/call_record.h"
#include "agent/mcp/questions.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/tables/fields.h"

namespace caisson::mcp {
namespace {

using services::Items;
using services::Kind;
using services::McpHub;
using services::McpServer;

constexpr std::size_t kMostName = 128, kMostUri = 4096;
// RFC 5424, section 6.2.1, from the least to the most urgent.
constexpr std::string_view kLevels[] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
constexpr std::string_view kForwarded[] = {"tools/call", "prompts/get", "resources/read", "completion/complete"};

std::unexpected<Failure> wrong_params(std::string what) {
  return std::unexpected(Failure{.code = ErrorCode::invalid_params, .text = std::move(what)});
}

bool is_name(std::string_view name) {
  const auto known = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kMostName && std::ranges::all_of(name, known);
}

std::size_t rank(std::string_view level) {
  const auto found = std::ranges::find(kLevels, level);
  return static_cast<std::size_t>(found - std::begin(kLevels));
}

// Those that the credential may use at all.
std::vector<McpServer::Pointer> permitted(const Client& client) {
  std::vector<McpServer::Pointer> out;
  for (const McpServer::Pointer& server : client.hub->servers())
    if (server->config().permits(client.identity) && client.filter.admits_server(server->config().name, server->config().tags))
      out.push_back(server);
  return out;
}

bool may_use(const Client& client, const McpServer& server, std::string_view own_name) {
  return server.config().permits(client.identity, own_name) &&
         client.filter.admits_tool(server.config().prefix + std::string(own_name));
}

bool has(const std::vector<json::Value>& items, std::string_view member, std::string_view name) {
  return std::ranges::any_of(items, [&](const json::Value& item) { return json::text_of(item, member) == name; });
}

struct Target {
  McpServer::Pointer server;
  std::string name;  // the server's own
};

// Whose name that is. Servers whose prefix fits are asked for their lists, in order.
asio::awaitable<Or<Target>> target_of(Client client, Kind kind, std::string name) {
  std::optional<Failure> why;
  const std::vector<McpServer::Pointer> servers = permitted(client);
  for (const McpServer::Pointer& server : servers) {
    // The name may be that of a configured server, which has not said so: an added one does not get what was meant for it.
    if (why && !server->config().added_by.empty()) break;
    if (!name.starts_with(server->config().prefix)) continue;
    const std::string own = name.substr(server->config().prefix.size());
    if (kind == Kind::tools && !may_use(client, *server, own)) continue;
    Items items = server->known(kind);
    if (!items) {
      auto asked = co_await McpServer::list(server, kind);
      if (asked) items = std::move(*asked);
      else why = std::move(asked).error();
    }
    if (items && has(*items, "name", own)) co_return Target{server, own};
  }
  if (why) co_return std::unexpected(std::move(*why));
  co_return wrong_params((kind == Kind::tools ? "Unknown tool: " : "Unknown prompt: ") + quote(name));
}

// Whether an address can be of a template (RFC 6570): its text before, between and after the expressions is there in order.
bool fits(std::string_view pattern, std::string_view uri) {
  bool open = false;
  std::size_t at = 0;
  while (true) {
    const std::size_t brace = std::min(pattern.find('{'), pattern.size());
    const std::string_view text = pattern.substr(0, brace);
    const std::size_t found =
        brace == pattern.size() && open && uri.size() >= at + text.size() ? uri.size() - text.size() : uri.find(text, at);
    if (found == std::string_view::npos || (!open && found != at) || !uri.substr(found).starts_with(text)) return false;
    at = found + text.size();
    if (brace == pattern.size()) return at == uri.size();
    const std::size_t end = pattern.find('}', brace);
    if (end == std::string_view::npos) return false;
    pattern.remove_prefix(end + 1);
    open = true;
  }
}

asio::awaitable<Or<Target>> resource_target(Client client, std::string uri) {
  bool all_said = true;
  for (const bool added : {false, true}) {
    if (added && !all_said) break;  // as in target_of
    for (const Kind kind : {Kind::resources, Kind::templates}) {
      std::vector<McpServer::Pointer> servers = permitted(client);
      std::erase_if(servers, [added](const McpServer::Pointer& one) { return one->config().added_by.empty() == added; });
      const std::size_t asked = servers.size();
      const std::vector<McpHub::Listed> lists = co_await client.hub->list(std::move(servers), kind);
      all_said = all_said && lists.size() == asked;
      const std::string_view member = services::row_of(kind).name;
      for (const auto& [server, items] : lists) {
        const bool found = std::ranges::any_of(*items, [&](const json::Value& item) {
          const std::string given = json::text_of(item, member);
          return kind == Kind::resources ? given == uri : given == uri || fits(given, uri);
        });
        if (found) co_return Target{server, uri};
      }
    }
  }
  const bool stateless = is_stateless(client.revision);
  co_return std::unexpected(Failure{.code = stateless ? ErrorCode::invalid_params : ErrorCode::resource_not_found,
                                    .text = "Resource not found: " + quote(uri),
                                    .data = {{"uri", uri}}});
}

// Which server a request is for; its name in `params` becomes the server's own.
asio::awaitable<Or<Target>> target_of_message(Client client, std::string method, json::Value params) {
  if (method == "resources/read" || method.starts_with("resources/")) {
    const std::string uri = json::text_of(params, "uri");
    if (uri.empty() || uri.size() > kMostUri) co_return wrong_params("Invalid params: uri must be text of at most 4096 bytes");
    co_return co_await resource_target(std::move(client), uri);
  }
  if (method == "completion/complete") {
    const auto ref = params.find("ref");
    if (ref == params.end() || !ref->is_object()) co_return wrong_params("Invalid params: ref must be an object");
    const std::string uri = json::text_of(*ref, "uri"), name = json::text_of(*ref, "name");
    if (uri.size() > kMostUri) co_return wrong_params("Invalid params: uri has more than 4096 bytes");
    if (!uri.empty()) co_return co_await resource_target(std::move(client), uri);
    co_return co_await target_of(std::move(client), Kind::prompts, name);
  }
  const std::string name = json::text_of(params, "name");
  if (name.empty()) co_return wrong_params("Invalid params: name must be text");
  co_return co_await target_of(std::move(client), method == "tools/call" ? Kind::tools : Kind::prompts, name);
}

services::AskerPtr asker_of(const Client& client, const json::Value& meta, const MessageStreamPtr& stream) {
  auto asker = std::make_shared<services::Asker>();
  asker->owner = client.session->owner;
  if (!stream) return asker;
  asker->tell = [client, meta, stream](json::Value notification) {
    if (wants_log(client, meta, notification)) stream->push(notification);
  };
  if (client.session->id.empty()) return asker;
  asker->ask = [session = client.session, stream](std::string method, json::Value params) {
    return services::ClientSession::ask(session, stream, std::move(method), std::move(params));
  };
  return asker;
}

void follow_progress(services::Exchange& exchange, const json::Value& meta, const MessageStreamPtr& stream) {
  const auto token = meta.is_object() ? meta.find("progressToken") : meta.end();
  if (!stream || token == meta.end()) return;
  exchange.on_progress = [token = *token, stream](json::Value params) {
    params["progressToken"] = token;
    stream->push(notification_message("notifications/progress", std::move(params)));
  };
}

}  // namespace

bool wants_log(const Client& client, const json::Value& meta, const json::Value& notification) {
  std::string least = client.session->level;
  if (is_stateless(client.revision)) {
    least = json::text_of(meta, "io.modelcontextprotocol/logLevel");
    if (least.empty()) return false;
  }
  return least.empty() || rank(json::text_of(notification["params"], "level")) >= rank(least);
}

asio::awaitable<Or<json::Value>> send_to(Client client, McpServer::Pointer server, services::ServerInstance::Pointer copy,
                                         std::string method, json::Value params, services::AskerPtr asker,
                                         services::ExchangePtr exchange) {
  std::optional<CallRecord> record;
  if (method == "tools/call")
    record.emplace(client.server, client.workspace, client.identity, server->config().name, json::text_of(params, "name"),
                   params["arguments"]);
  const services::ServerInstance::Pointer asked = copy ? copy : server->shared();
  auto told = co_await McpServer::request(std::move(server), std::move(copy), std::move(method), std::move(params),
                                          std::move(asker), std::move(exchange));
  if (record && told && told->is_object()) record->ended(told->contains("isError") && (*told)["isError"] == true);
  if (record && client.launcher != nullptr && !asked->session().empty()) {
    const Status noted = co_await record->note(*client.launcher, asked->session());
    // Where the session has ended with the call, its log says so; anything else is a call without a record.
    if (!noted && noted.error().code != Code::not_found)
      co_return std::unexpected(
          Failure{.code = ErrorCode::internal, .text = "the call is not on record: " + noted.error().text()});
  }
  if (told && !told->is_object())
    co_return std::unexpected(Failure{.code = ErrorCode::internal, .text = "the server's result is no object"});
  co_return told;
}

asio::awaitable<Or<json::Value>> send(Client client, McpServer::Pointer server, std::string method, json::Value params,
                                      MessageStreamPtr stream, services::ExchangePtr exchange) {
  const auto found = params.find("_meta");
  const json::Value meta = found != params.end() && found->is_object() ? *found : json::Value::object();
  services::AskerPtr asker = asker_of(client, meta, stream);
  follow_progress(*exchange, meta, stream);
  services::ServerInstance::Pointer copy = stream ? client.hub->copy_of(server, client.session) : nullptr;
  co_return co_await send_to(std::move(client), std::move(server), std::move(copy), std::move(method), std::move(params),
                             std::move(asker), std::move(exchange));
}

std::string owner_of(const auth::Principal& principal) {
  return principal.holder() + " " + std::string(auth::kind_name(principal.kind)) + " " + principal.name;
}

Client client_of(const Call& call, Revision revision, ClientSessionPtr session) {
  if (!session)
    session =
        std::make_shared<services::ClientSession>(call.services.launcher->executor(), nullptr, "", owner_of(call.principal));
  return {.hub = call.services.workspace->mcp.get(),
          .server = call.services.server,
          .launcher = call.services.launcher,
          .workspace = call.services.workspace->name,
          .session = std::move(session),
          .identity = call.principal.name,
          .revision = revision,
          .filter = Filter(call.request),
          .scopes = call.principal.bounds.scopes};
}

bool is_forwarded(const Message& message) {
  if (std::ranges::find(kForwarded, message.method) == std::end(kForwarded)) return false;
  if (message.method != "tools/call") return true;
  const std::string name = json::text_of(message.params, "name");
  return !name.empty() && !has_tool(name);
}

asio::awaitable<Or<json::Value>> forward(Client client, Message message, MessageStreamPtr stream,
                                         services::ExchangePtr exchange) {
  std::string method = message.method;
  auto target = co_await target_of_message(client, method, message.params);
  if (!target) co_return std::unexpected(std::move(target).error());
  const bool interruptible = may_be_interrupted(client, *target->server, method);
  std::string binding = interruptible ? binding_of(method, message.params) : "";
  json::Value params = std::move(message.params);
  if (method == "completion/complete") {
    if (params["ref"].contains("name")) params["ref"]["name"] = target->name;
  } else if (params.contains("name")) {
    params["name"] = target->name;
  }
  if (method == "tools/call" && (!params.contains("arguments") || params["arguments"].is_null()))
    params["arguments"] = json::Value::object();
  if (interruptible)
    co_return co_await converse(std::move(client), target->server, std::move(method), std::move(params), std::move(binding),
                                std::move(stream), std::move(exchange));
  co_return co_await send(std::move(client), target->server, std::move(method), std::move(params), std::move(stream),
                          std::move(exchange));
}

asio::awaitable<Or<json::Value>> call_on(Client client, McpServer::Pointer server, std::string tool, json::Value arguments) {
  if (!may_use(client, *server, tool)) co_return wrong_params("Unknown tool: " + quote(tool));
  auto listed = co_await McpServer::list(server, Kind::tools);
  if (!listed) co_return std::unexpected(std::move(listed).error());
  if (!has(**listed, "name", tool)) co_return wrong_params("Unknown tool: " + quote(tool));
  auto exchange = std::make_shared<services::Exchange>(client.session->executor);
  json::Value params = json::Value::object();
  params["name"] = std::move(tool);
  params["arguments"] = std::move(arguments);
  std::string method = "tools/call";
  co_return co_await send(std::move(client), std::move(server), std::move(method), std::move(params), nullptr,
                          std::move(exchange));
}

asio::awaitable<json::Value> listed_of_servers(Client client, Kind kind) {
  std::vector<McpServer::Pointer> servers = permitted(client);
  const std::vector<McpHub::Listed> lists = co_await client.hub->list(std::move(servers), kind);
  json::Value out = json::Value::array();
  std::set<std::string> names;
  const std::string_view member = services::row_of(kind).name;
  const bool prefixed = kind == Kind::tools || kind == Kind::prompts;
  for (const auto& [server, items] : lists)
    for (const json::Value& item : *items) {
      const std::string own = json::text_of(item, member);
      const std::string name = prefixed ? server->config().prefix + own : own;
      if (prefixed && !is_name(name)) continue;
      if (kind == Kind::tools &&
          (has_tool(name) || !may_use(client, *server, own) || !client.filter.finds(name, json::text_of(item, "description"))))
        continue;
      if (!names.insert(name).second) continue;
      out.push_back(item);
      out.back()[std::string(member)] = name;
    }
  co_return out;
}

asio::awaitable<Or<json::Value>> tools_of(Client client, McpServer::Pointer server) {
  auto listed = co_await McpServer::list(server, Kind::tools);
  if (!listed) co_return std::unexpected(std::move(listed).error());
  json::Value out = json::Value::array();
  for (const json::Value& item : **listed)
    if (may_use(client, *server, json::text_of(item, "name"))) out.push_back(item);
  co_return out;
}

asio::awaitable<Or<json::Value>> follow(Client client, Message message) {
  const std::string uri = json::text_of(message.params, "uri");
  const bool begins = message.method == "resources/subscribe";
  auto target = co_await target_of_message(client, message.method, message.params);
  if (!target) co_return std::unexpected(std::move(target).error());
  std::set<std::string>& known = client.session->subscriptions;
  if (begins && known.size() >= services::ClientSession::kMostSubscriptions) co_return wrong_params("too many subscriptions");
  if (begins) known.insert(uri);
  else known.erase(uri);
  if (!begins && client.hub->sessions.anyone_follows(uri)) co_return json::Value::object();
  auto exchange = std::make_shared<services::Exchange>(client.session->executor);
  auto stream = std::make_shared<services::MessageStream>(client.session->executor, "");
  json::Value params = json::Value::object();
  params["uri"] = uri;
  McpServer::Pointer server = std::move(target->server);
  std::string method = std::move(message.method);
  co_return co_await send(std::move(client), std::move(server), std::move(method), std::move(params), std::move(stream),
                          std::move(exchange));
}

asio::awaitable<Or<json::Value>> set_level(Client client, json::Value params) {
  const std::string level = json::text_of(params, "level");
  if (rank(level) == std::size(kLevels)) co_return wrong_params("Invalid params: level must be one of RFC 5424's names");
  client.session->level = level;
  for (const auto& [name, copy] : client.session->copies)
    if (copy->start_number() != 0 && copy->offers("logging")) {
      auto exchange = std::make_shared<services::Exchange>(client.session->executor);
      auto nobody = std::make_shared<services::Asker>();
      json::Value sent = params;
      std::string method = "logging/setLevel";
      services::ServerInstance::Pointer to = copy;
      (void)co_await services::ServerInstance::request(std::move(to), std::move(method), std::move(sent), std::move(nobody),
                                                       std::move(exchange));
    }
  co_return json::Value::object();
}

}  // namespace caisson::mcp
