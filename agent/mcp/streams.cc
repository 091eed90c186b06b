#include "agent/mcp/streams.h"

#include <charconv>

#include "agent/mcp/methods.h"

namespace caisson::mcp {
namespace {

// How soon a client that has left is noticed while its server is silent.
constexpr std::chrono::seconds kLook{1};

bridge::Clock::time_point next_look() { return bridge::Clock::now() + kLook; }

struct UnderWay {
  UnderWay(ClientSessionPtr owner, std::string request, services::ExchangePtr exchange)
      : session(std::move(owner)), id(std::move(request)) {
    session->under_way[id] = std::move(exchange);
  }
  ~UnderWay() { session->under_way.erase(id); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ClientSessionPtr session;
  std::string id;
};

// heard: the client takes what is said before the result.
task<void> carry_out(Client client, Message message, MessageStreamPtr stream, services::ExchangePtr exchange, bool heard) {
  json::Value id = message.id;
  const std::string method = message.method;
  const Revision revision = client.revision;
  const UnderWay here(client.session, json::dump(id), exchange);
  auto result = co_await forward(std::move(client), std::move(message), heard ? stream : nullptr, std::move(exchange));
  if (result) complete(*result, revision, method);
  else if (is_stateless(revision) && result.error().code == ErrorCode::missing_capability) stream->status = 400;
  stream->finish(result ? result_message(std::move(id), std::move(*result)) : error_message(std::move(id), result.error()));
  co_return Status{};
}

// Sends what comes after a message until the stream is over or another connection has it.
task<http::Response> send_stream(Call call, ClientSessionPtr session, MessageStreamPtr stream, std::uint64_t after,
                                 bool numbered) {
  const std::uint64_t reader = ++stream->readers;
  stream->changed.notify_all();
  CO_TRY_ASSIGN(http::EventStream events, co_await call.event_stream());
  while (stream->readers == reader && !session->over && !call.request.client_gone()) {
    const services::MessageStream::Event* event = stream->after(after);
    if (event != nullptr) {
      after = event->number;
      http::Event sent;
      if (numbered) sent.id = stream->id + "-" + std::to_string(after);
      sent.data = event->text;
      if (!co_await events.send(std::move(sent))) break;
      continue;
    }
    if (stream->over()) {
      session->close_stream(stream);
      break;
    }
    (void)co_await stream->changed.wait_until(next_look());
  }
  co_return http::already_sent();
}

struct Place {
  std::string stream;
  std::uint64_t after = 0;
};
// "12-7": after the seventh message of stream 12.
std::optional<Place> place_of(std::string_view event_id) {
  const std::size_t dash = event_id.find('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  Place out{.stream = std::string(event_id.substr(0, dash))};
  const std::string_view number = event_id.substr(dash + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out.after);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return out;
}

http::Response refused(int status, std::string text) {
  const Failure why{.code = ErrorCode::invalid_request, .text = std::move(text)};
  return http::json_response(status, error_message(nullptr, why));
}

}  // namespace

task<http::Response> answer_in_stream(Call call, Client client, Message message) {
  const ClientSessionPtr session = client.session;
  const bool stateless = session->id.empty(), streams = call.request.accepts_event_stream();
  if (session->under_way.contains(json::dump(message.id)))
    co_return http::json_response(
        400, error_message(message.id, {.code = ErrorCode::invalid_request, .text = "a request with this id is under way"}));
  const MessageStreamPtr stream = session->open_stream();
  auto exchange = std::make_shared<services::Exchange>(session->executor);
  spawn(session->executor, "MCP request", carry_out(std::move(client), std::move(message), stream, exchange, streams));
  while (stream->after(0) == nullptr || (!streams && !stream->over())) {
    if (call.request.client_gone()) {
      if (stateless) exchange->call_off();
      co_return http::already_sent();
    }
    (void)co_await stream->changed.wait_until(next_look());
  }
  if (streams && !(stream->over() && stream->last() == 1)) {
    auto sent = co_await send_stream(std::move(call), session, stream, 0, !stateless);
    if (stateless && !stream->over()) exchange->call_off();
    co_return sent;
  }
  http::Response response;
  response.status = stream->status;
  response.body = stream->after(stream->last() - 1)->text;
  session->close_stream(stream);
  co_return response;
}

task<http::Response> answer_listener(Call call, Client client, Message message) {
  struct Wish {
    std::string_view member, method;
  };
  static constexpr Wish kWishes[] = {{"toolsListChanged", "notifications/tools/list_changed"},
                                     {"promptsListChanged", "notifications/prompts/list_changed"},
                                     {"resourcesListChanged", "notifications/resources/list_changed"}};
  const auto failed = [&message](ErrorCode code, std::string text) {
    return http::json_response(200, error_message(message.id, {.code = code, .text = std::move(text)}));
  };
  const auto wishes = message.params.find("notifications");
  if (wishes == message.params.end() || !wishes->is_object())
    co_return failed(ErrorCode::invalid_params, "Invalid params: notifications must be an object");
  auto listener = std::make_shared<services::Listener>();
  listener->stream = client.session->open_stream();
  listener->request_id = message.id;
  json::Value granted = json::Value::object();
  for (const Wish& wish : kWishes)
    if (const auto asked = wishes->find(wish.member); asked != wishes->end() && *asked == true) {
      listener->methods.emplace(wish.method);
      granted[std::string(wish.member)] = true;
    }
  if (const auto uris = wishes->find("resourceSubscriptions"); uris != wishes->end() && uris->is_array()) {
    for (const json::Value& uri : *uris) {
      if (!uri.is_string() || listener->uris.size() >= services::ClientSession::kMostSubscriptions) continue;
      Message wanted{.method = "resources/subscribe"};
      wanted.params["uri"] = uri;
      Client asker = client;
      if (co_await follow(std::move(asker), std::move(wanted))) listener->uris.insert(uri.get<std::string>());
    }
    if (!listener->uris.empty()) granted["resourceSubscriptions"] = listener->uris;
  }
  if (!client.hub->sessions.listen(listener)) co_return failed(ErrorCode::internal, "too many clients listen");
  json::Value params = json::Value::object();
  params["_meta"]["io.modelcontextprotocol/subscriptionId"] = message.id;
  params["notifications"] = std::move(granted);
  listener->stream->push(notification_message("notifications/subscriptions/acknowledged", std::move(params)));
  const ClientSessionPtr session = client.session;
  co_return co_await send_stream(std::move(call), session, listener->stream, 0, false);
}

task<http::Response> stream_of_session(Call call, ClientSessionPtr session) {
  const auto last = call.request.header("last-event-id");
  const auto place =
      last ? place_of(*last)
           : std::optional(Place{.stream = "0", .after = session->notices->readers == 0 ? 0 : session->notices->last()});
  const MessageStreamPtr stream = place ? session->find_stream(place->stream) : nullptr;
  if (!stream) co_return refused(400, "Last-Event-ID names no stream of this session");
  const std::uint64_t after = place->after;
  co_return co_await send_stream(std::move(call), std::move(session), stream, after, true);
}

}  // namespace caisson::mcp
