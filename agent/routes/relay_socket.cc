#include "agent/routes/relay_socket.h"

#include "agent/metrics/registry.h"

namespace caisson::routes {
namespace {

using services::Relay;

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr double kLastBytesSeconds = 5;

struct Conversation {
  Conversation(Relay::Pointer r, http::WebSocket s, std::shared_ptr<Wire> w, WireLimits l)
      : relay(std::move(r)), socket(std::move(s)), wire(std::move(w)), limits(l), over(relay->program()->executor()) {
    metrics::registry().add(metrics::Id::screen_clients, {limits.protocol});
  }
  ~Conversation() { metrics::registry().add(metrics::Id::screen_clients, {limits.protocol}, -1); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  const Relay::Pointer relay;
  const http::WebSocket socket;
  const std::shared_ptr<Wire> wire;
  const WireLimits limits;
  bool said_all = false;  // nothing more comes from the program
  bridge::Notifier over;
};
using ConversationPtr = std::shared_ptr<Conversation>;

task<void> pass_down(ConversationPtr talk, std::string bytes) {
  while (true) {
    if (talk->wire->is_held()) co_await talk->wire->await_turn();
    if (!bytes.empty() && !co_await talk->wire->send_down(talk->socket, std::move(bytes))) break;
    auto next = co_await Relay::read(talk->relay, kPieceBytes);
    if (!next || next->empty()) break;
    bytes = std::move(*next);
  }
  talk->said_all = true;
  talk->over.notify_all();
  co_return co_await talk->socket.close(1001, std::string(talk->limits.last_words));
}

task<void> pass_up(ConversationPtr talk) {
  while (true) {
    CO_TRY_ASSIGN(auto piece, co_await talk->socket.receive_piece(talk->limits.most_message));
    if (!piece) co_return Status{};
    auto bytes = talk->wire->for_program(std::move(*piece));
    if (!bytes) co_return co_await talk->socket.close(1003, bytes.error().what);
    if (bytes->empty()) continue;
    if (talk->wire->is_held()) co_await talk->wire->await_turn();
    CO_TRY(co_await Relay::write(talk->relay, std::move(*bytes)));
  }
}

}  // namespace

task<void> join(Relay::Pointer relay, http::WebSocket socket, std::shared_ptr<Wire> wire, WireLimits limits, std::string first) {
  const auto talk = std::make_shared<Conversation>(std::move(relay), std::move(socket), std::move(wire), limits);
  spawn(talk->relay->program()->executor(), "relay to a client", pass_down(talk, std::move(first)));
  Status passed = co_await pass_up(talk);
  talk->relay->end();
  const auto deadline = bridge::deadline_after(kLastBytesSeconds);
  while (!talk->said_all)
    if (!co_await talk->over.wait_until(deadline)) break;
  if (!talk->said_all) talk->socket.abort();
  co_return passed;
}

}  // namespace caisson::routes
