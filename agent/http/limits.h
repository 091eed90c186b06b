// Every bound of the HTTP server in one place; tests shorten them. A client that passes one is answered, where the
// protocol still allows an answer, and disconnected.
#pragma once

#include <chrono>
#include <cstddef>

namespace caisson::http {

struct Limits {
  std::size_t head_bytes = 16 * 1024;  // request line and headers together
  std::size_t target_bytes = 8 * 1024;
  std::size_t headers = 100;
  std::size_t connections = 2048;         // one more replaces one that stands still, or is for a probe
  std::size_t connections_of_one = 1024;  // the same for one client address
  // Connections beyond these, on which only probes are served: a full server must not look like a dead one. Each has little
  // time for its one request, and one more replaces the oldest of the client with the most.
  std::size_t probe_connections = 64;
  std::chrono::milliseconds probe_timeout{2'000};
  // Requests, WebSockets and streams of one credential under way, and of one workspace: of all connections a half and three
  // quarters, so that neither takes every place, from however many addresses. Nothing can end those to make room.
  std::size_t under_way_of_one = 1024;
  std::size_t under_way_of_workspace = 1536;
  // Requests and WebSockets to servers in one workspace, of one credential for a port or a path: a half of
  // proxy::Proxy::kRequests. Such a credential is handed to others, who must not shut the workspace's own clients out.
  std::size_t relayed_of_narrow = 128;
  std::size_t lingering = 256;  // refused clients that may still be reading why; one more replaces the oldest
  std::chrono::milliseconds handshake_timeout{10'000};  // of TLS, from accept to its end
  std::chrono::milliseconds head_timeout{10'000};       // from the first byte (or accept) to the end of the head
  std::chrono::milliseconds body_timeout{30'000};       // for each body_step bytes of a body
  std::chrono::milliseconds idle_timeout{75'000};       // between two requests
  std::chrono::milliseconds write_timeout{60'000};      // for each write_step bytes of a response
  std::chrono::milliseconds gone_grace{10'000};         // for a half-closed client to read its answer
  std::chrono::milliseconds linger{2'000};              // reading on after a refusal, so that the client sees the answer
  std::chrono::milliseconds heartbeat{15'000};          // silence in an event stream before a comment is sent
  std::chrono::milliseconds websocket_idle{60'000};     // without any frame, pongs included
  // What is open is compared with the credentials: how long a WebSocket, a stream or a tunnel may outlive its own.
  std::chrono::milliseconds recheck{5'000};
  std::chrono::milliseconds close_grace{1'000};  // for the client's half of the closing handshake after that
  std::size_t websocket_message = 1024 * 1024;
  std::size_t body_step = 64 * 1024;
  std::size_t write_step = 256 * 1024;
  // Bytes of bodies, answers and messages that all connections hold together (budget.h). The agent has 1 GiB (RLIMIT_DATA) for
  // these, for kept output (CAISSON_OUTPUT_TOTAL_BYTES), for uncounted_bytes of each connection, and for the request that is
  // being processed.
  std::size_t held_bytes = 192 * 1024 * 1024;
  std::size_t held_bytes_of_one = 96 * 1024 * 1024;         // of one client address
  std::size_t held_bytes_of_workspace = 144 * 1024 * 1024;  // of one workspace
  std::size_t uncounted_bytes =
      32 * 1024;  // of one body or answer, so that small requests are served even when the budget is full
  std::chrono::milliseconds room_wait{2'000};  // how long a body waits, unread, for room; then 429 or 503
  std::chrono::milliseconds room_poll{100};
  std::chrono::milliseconds pace_window{1'000};  // a connection that moves fewer than least_pace bytes a second for this long
  std::size_t least_pace = 64 * 1024;            // may be ended to make room for another
};

}  // namespace caisson::http
