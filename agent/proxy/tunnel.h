// Bytes both ways between two sockets, as after a WebSocket's handshake. Each direction holds one piece and reads on when it is
// written, so a slow end slows the other. A half-close passes through.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/coro.h"
#include "agent/http/server.h"

namespace caisson::proxy {

// Returns when both directions have ended, one has failed, or no byte has moved for `silence`: how many bytes the client got. The
// sockets outlive the call.
[[nodiscard]] task<std::uint64_t> join(http::ClientSocket client, asio::ip::tcp::socket* app, std::string to_client,
                                       std::string to_app, std::chrono::milliseconds silence);

}  // namespace caisson::proxy
