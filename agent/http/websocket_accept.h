// The server's half of the WebSocket handshake. Private to agent/http; Beast stays in websocket.cc.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/budget.h"
#include "agent/http/framing.h"
#include "agent/http/tls_stream.h"
#include "agent/http/websocket.h"

namespace caisson::http {

// Whether the head asks for an upgrade that accept_websocket() can answer (GET, HTTP/1.1, version 13, key).
[[nodiscard]] bool is_websocket_upgrade(const Head& head);

// `raw_head` has passed check_head(). The socket takes over the transport. in, out: shares for received and sent messages.
[[nodiscard]] task<std::shared_ptr<WebSocket::Transport>> accept_websocket(asio::ip::tcp::socket socket, std::string raw_head,
                                                                           std::string request_id, Limits limits,
                                                                           Budget::Share in, Budget::Share out);
[[nodiscard]] task<std::shared_ptr<WebSocket::Transport>> accept_websocket(TlsStream stream, std::string raw_head,
                                                                           std::string request_id, Limits limits,
                                                                           Budget::Share in, Budget::Share out);

}  // namespace caisson::http
