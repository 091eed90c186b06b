// WebSocket: the server's end of one connection, messages up to Limits::websocket_message, pings and idle timeouts inside.
// At most one receive(), receive_message() or receive_piece() at a time; send() may be called by several coroutines, messages
// leave in order and whole. What is too large to be held passes in pieces. The handler owns it; the connection ends when the
// handler returns (with a close frame).
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

// Part of a message.
struct WebSocketPiece {
  std::string data;
  bool binary = false;
  bool last = false;  // of its message
};

class WebSocket {
 public:
  // Behind the facade: websocket.cc implements it with Beast.
  class Transport {
   public:
    virtual ~Transport() = default;
    virtual task<std::optional<std::string>> receive() = 0;
    virtual task<std::optional<WebSocketMessage>> receive_message() = 0;
    virtual task<std::optional<WebSocketPiece>> receive_piece(std::uint64_t most) = 0;
    virtual task<void> send(std::string text) = 0;
    virtual task<void> send_message(WebSocketMessage message) = 0;
    virtual task<void> send_piece(WebSocketPiece piece) = 0;
    virtual task<void> close(std::uint16_t code, std::string reason) = 0;
    virtual void abort() = 0;
  };
  explicit WebSocket(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}

  // The next text message. nullopt: the client closed. Errors: protocol (binary or oversized message), timeout, io.
  [[nodiscard]] task<std::optional<std::string>> receive() const { return transport_->receive(); }
  // The same, and binary messages are none of the errors.
  [[nodiscard]] task<std::optional<WebSocketMessage>> receive_message() const { return transport_->receive_message(); }
  // What has come of a message, at most 64 KiB. most: bytes of a whole message; a larger one is a protocol error.
  [[nodiscard]] task<std::optional<WebSocketPiece>> receive_piece(std::uint64_t most) const {
    return transport_->receive_piece(most);
  }
  // `text` must be UTF-8. Returns when the kernel has taken the bytes, so awaiting it gives back-pressure.
  [[nodiscard]] task<void> send(std::string text) const { return transport_->send(std::move(text)); }
  [[nodiscard]] task<void> send_message(WebSocketMessage message) const { return transport_->send_message(std::move(message)); }
  // Only one coroutine sends pieces, and nothing else is sent meanwhile: nothing may come between two pieces of a message.
  // `binary` of the first piece is that of the message.
  [[nodiscard]] task<void> send_piece(WebSocketPiece piece) const { return transport_->send_piece(std::move(piece)); }
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
