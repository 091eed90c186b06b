// A WebSocket whose client talks with a program in a session, by a relay (services/program/relay.h). Bytes are copied in pieces
// and never held: what one side does not take is not read from the other.
#pragma once

#include <memory>
#include <string>

#include "agent/http/coro.h"
#include "agent/http/websocket.h"
#include "agent/services/program/relay.h"

namespace caisson::routes {

// How the messages of one protocol are written on both sides.
class Wire {
 public:
  Wire() = default;
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // What the program says, to the client.
  [[nodiscard]] virtual task<void> send_down(http::WebSocket socket, std::string bytes) = 0;
  // What the client says, for the program; "": nothing of it is. Error: the connection ends, and the client is told its text.
  [[nodiscard]] virtual Result<std::string> for_program(http::WebSocketPiece piece) = 0;
  // Whether nothing may pass for now; await_turn() then returns when it may.
  [[nodiscard]] virtual bool is_held() const { return false; }
  [[nodiscard]] virtual asio::awaitable<void> await_turn() { co_return; }
};

struct WireLimits {
  std::uint64_t most_message;   // bytes of one of the client's
  std::string_view last_words;  // to the client, when the program has ended
  std::string_view protocol;    // in the metrics
};

// Returns when either side has ended. `first` came from the program already.
[[nodiscard]] task<void> join(services::Relay::Pointer relay, http::WebSocket socket, std::shared_ptr<Wire> wire,
                              WireLimits limits, std::string first = "");

}  // namespace caisson::routes
