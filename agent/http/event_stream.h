// EventStream: a response of Server-Sent Events (text/event-stream). A handler opens it with call.event_stream(), only
// when request.accepts_event_stream(); sends; and returns already_sent(). The connection adds a comment after 15 s of
// silence, so that proxies keep it and a dead client is noticed. Back-pressure: send() returns when the bytes are written.
#pragma once

#include <string>
#include <string_view>

#include "agent/http/coro.h"

namespace caisson::http {

struct Event {
  std::string event;  // empty: the default type "message"
  std::string id;     // empty: none
  std::string data;   // may hold line breaks
};

// The event as bytes on the wire. CR, LF and NUL cannot break out of a field.
[[nodiscard]] std::string format_event(const Event& event);

// Implemented by the connection.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // Sends the head (once), then pieces of the body, each within the write timeout.
  virtual task<void> start(std::string content_type) = 0;
  virtual task<void> write(std::string bytes) = 0;
};

class EventStream {
 public:
  // Handlers call Call::event_stream() instead.
  [[nodiscard]] static task<EventStream> open(StreamWriter& writer);

  // Code::io when the client is gone: stop sending, but do not end the command for it.
  [[nodiscard]] task<void> send(Event event);

 private:
  explicit EventStream(StreamWriter& writer) : writer_(&writer) {}
  StreamWriter* writer_;  // the connection, which waits for its handler and so outlives this
};

}  // namespace caisson::http
