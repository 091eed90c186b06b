// WebSocket: the server's end of one connection, messages up to Limits::websocket_message, pings and idle timeouts inside.
// At most one receive() or receive_message() at a time; send() may be called by several coroutines, messages leave in order and
// whole. The handler owns it; the connection ends when the handler returns (with a close frame).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/http/coro.h"

namespace caisson::http {

struct WebSocketMessage {
  std::string data;
  bool binary = false;  // otherwise it is UTF-8
};

class WebSocket {
 public:
  // Behind the facade: websocket.cc implements it with Beast.
  class Transport {
   public:
    virtual ~Transport() = default;
    virtual task<std::optional<std::string>> receive() = 0;
    virtual task<std::optional<WebSocketMessage>> receive_message() = 0;
    virtual task<void> send(std::string text) = 0;
    virtual task<void> send_message(WebSocketMessage message) = 0;
    virtual task<void> close(std::uint16_t code, std::string reason) = 0;
    virtual void abort() = 0;
  };
  explicit WebSocket(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}

  // The next text message. nullopt: the client closed. Errors: protocol (binary or oversized message), timeout, io.
  [[nodiscard]] task<std::optional<std::string>> receive() const { return transport_->receive(); }
  // The same, and binary messages are none of the errors.
  [[nodiscard]] task<std::optional<WebSocketMessage>> receive_message() const { return transport_->receive_message(); }
  // `text` must be UTF-8. Returns when the kernel has taken the bytes, so awaiting it gives back-pressure.
  [[nodiscard]] task<void> send(std::string text) const { return transport_->send(std::move(text)); }
  [[nodiscard]] task<void> send_message(WebSocketMessage message) const { return transport_->send_message(std::move(message)); }
  // Starts the closing handshake; a pending receive() then ends with nullopt.
  [[nodiscard]] task<void> close(std::uint16_t code, std::string reason) const {
    return transport_->close(code, std::move(reason));
  }
  // Drops the connection at once; pending operations end with an error.
  void abort() const { transport_->abort(); }

 private:
  std::shared_ptr<Transport> transport_;  // shared with operations under way, so that a copy in a child task is safe
};

}  // namespace caisson::http
