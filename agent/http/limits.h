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
  std::size_t connections = 1024;                    // one more is answered 503 and closed
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
};

}  // namespace caisson::http
