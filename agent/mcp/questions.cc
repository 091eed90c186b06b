#include "agent/mcp/questions.h"

#include <algorithm>

#include "launcher/common/base/hash.h"
#include "launcher/common/tables/fields.h"

namespace caisson::mcp {
namespace {

using services::McpServer;
using services::PendingCallPtr;

constexpr std::string_view kInterruptible[] = {"tools/call", "prompts/get", "resources/read"};
constexpr std::string_view kOfRound[] = {"_meta", "inputResponses", "requestState"};

std::unexpected<Failure> wrong_round(std::string what) {
  return std::unexpected(Failure{.code = ErrorCode::invalid_params, .text = "Invalid params: " + std::move(what)});
}

json::Value taken_out(json::Value& params, std::string_view member) {
  const auto found = params.find(member);
  if (found == params.end()) return nullptr;
  json::Value out = std::move(*found);
  params.erase(found);
  return out;
}

// Outlives the client's request, until the server has answered or nobody comes back.
task<void> carry_on(Client client, McpServer::Pointer server, PendingCallPtr call, std::string method, json::Value params) {
  auto asker = std::make_shared<services::Asker>();
  asker->owner = call->owner;
  asker->tell = [client, call](json::Value notification) {
    if (call->stream && wants_log(client, call->meta, notification)) call->stream->push(notification);
  };
  asker->ask = [call](std::string asked, json::Value of) {
    return services::PendingCall::ask(call, std::move(asked), std::move(of));
  };
  if (call->meta.contains("progressToken"))
    call->exchange->on_progress = [weak = std::weak_ptr(call)](json::Value progress) {
      const PendingCallPtr of = weak.lock();
      if (!of || !of->stream || !of->meta.contains("progressToken")) return;
      progress["progressToken"] = of->meta["progressToken"];
      of->stream->push(notification_message("notifications/progress", std::move(progress)));
    };
  services::ServerInstance::Pointer copy = call->copy;
  services::ExchangePtr exchange = call->exchange;
  auto told = co_await send_to(std::move(client), std::move(server), std::move(copy), std::move(method), std::move(params),
                               std::move(asker), std::move(exchange));
  call->finish(std::move(told));
  co_return Status{};
}

// Until the server has answered, or asks.
asio::awaitable<Or<json::Value>> next_of(services::McpHub* hub, PendingCallPtr call, services::ExchangePtr exchange) {
  while (!call->result && !call->asks() && !call->over && !exchange->called_off)
    (void)co_await exchange->changed.wait_until(bridge::no_deadline());
  if (call->result) {
    Or<json::Value> result = std::move(*call->result);
    hub->calls.end(call);
    co_return result;
  }
  if (exchange->called_off || call->over) {
    hub->calls.end(call);
    co_return std::unexpected(Failure{.code = ErrorCode::internal, .text = "the request was cancelled"});
  }
  json::Value result = json::Value::object();
  result["resultType"] = "input_required";
  result["inputRequests"] = call->questions();
  result["requestState"] = hub->calls.park(call);
  co_return result;
}

}  // namespace

bool may_be_interrupted(const Client& client, const McpServer& server, std::string_view method) {
  return is_stateless(client.revision) && !server.config().newest &&
         std::ranges::find(kInterruptible, method) != std::end(kInterruptible);
}

std::string binding_of(std::string_view method, const json::Value& params) {
  json::Value bound = {{"method", method}, {"params", params}};
  for (const std::string_view member : kOfRound) bound["params"].erase(std::string(member));
  return sha256_hex(json::dump(bound));
}

asio::awaitable<Or<json::Value>> converse(Client client, McpServer::Pointer server, std::string method, json::Value params,
                                          std::string binding, MessageStreamPtr stream, services::ExchangePtr exchange) {
  json::Value responses = taken_out(params, "inputResponses");
  const json::Value state = taken_out(params, "requestState");
  const json::Value meta = params.value("_meta", json::Value::object());
  json::Value offered = askable(meta.value("io.modelcontextprotocol/clientCapabilities", json::Value::object()));
  const std::string owner = client.session->owner;
  binding += " " + server->config().name;
  services::McpHub* const hub = client.hub;
  if (!state.is_null()) {
    const PendingCallPtr call =
        state.is_string() ? hub->calls.find(state.get_ref<const std::string&>(), owner, binding) : nullptr;
    if (!call) co_return wrong_round("requestState was used, has expired, or belongs to another request");
    const bool readable =
        responses.is_null() ||
        (responses.is_object() && std::ranges::all_of(responses, [](const json::Value& one) { return one.is_object(); }));
    if (!readable) co_return wrong_round("inputResponses must be an object of objects");
    call->attend(exchange, std::move(stream), meta, std::move(offered));
    if (responses.is_object()) call->answer(std::move(responses));
    co_return co_await next_of(hub, call, std::move(exchange));
  }
  const PendingCallPtr call = offered.empty() ? nullptr : hub->begin_call(server, owner, offered, binding);
  if (!call)
    co_return co_await send(std::move(client), std::move(server), std::move(method), std::move(params), std::move(stream),
                            std::move(exchange));
  call->attend(exchange, std::move(stream), meta, std::move(offered));
  spawn(client.session->executor, "MCP call", carry_on(client, std::move(server), call, std::move(method), std::move(params)));
  co_return co_await next_of(hub, call, std::move(exchange));
}

}  // namespace caisson::mcp
