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
  std::size_t connections = 2048;                    // one more takes the place of one that stands still, or is answered 503
  std::size_t connections_of_one = 1024;             // the same, of one client address
  std::chrono::milliseconds head_timeout{10'000};    // from the first byte (or accept) to the end of the head
  std::chrono::milliseconds body_timeout{30'000};    // for each body_step bytes of a body
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests
  std::chrono::milliseconds write_timeout{60'000};   // for each write_step bytes of a response
  std::chrono::milliseconds gone_grace{10'000};      // a client that half-closed may still read its answer this long
  std::chrono::milliseconds linger{2'000};           // reading on after a refusal, so that the client sees the answer
  std::chrono::milliseconds heartbeat{15'000};       // silence in an event stream before a comment is sent
  std::chrono::milliseconds websocket_idle{60'000};  // without any frame, pongs included
  std::size_t body_step = 64 * 1024;
  std::size_t write_step = 256 * 1024;
  // What all connections hold of bodies, answers and messages (budget.h). The agent has 1 GiB (RLIMIT_DATA): this, what sessions
  // keep (CAISSON_OUTPUT_TOTAL_BYTES), uncounted_bytes for each connection, and room for the one request that is being worked on.
  std::size_t held_bytes = 192 * 1024 * 1024;
  std::size_t held_bytes_of_one = 96 * 1024 * 1024;         // of one client address
  std::size_t held_bytes_of_workspace = 144 * 1024 * 1024;  // of one workspace
  std::size_t uncounted_bytes = 32 * 1024;     // of one body or answer: small requests are served, however full it is
  std::chrono::milliseconds room_wait{2'000};  // nothing is read of a body for which there is no room; then 429 or 503
  std::chrono::milliseconds room_poll{100};
  std::chrono::milliseconds pace_window{1'000};  // whoever moves fewer than least_pace bytes a second for so long is
  std::size_t least_pace = 64 * 1024;            // ended when another wants its room or its place
};

}  // namespace caisson::http
