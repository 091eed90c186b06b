// EventStream: a response of Server-Sent Events (text/event-stream). A handler opens it with call.event_stream(), only
// when request.accepts_event_stream(); sends; and returns already_sent(). The connection adds a comment after 15 s of
// silence, so that proxies keep it and a dead client is noticed. Back-pressure: send() returns when the bytes are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/http/coro.h"
#include "agent/http/lane.h"
#include "agent/http/response.h"

namespace caisson::http {

struct Event {
  std::string event;  // empty: the default type "message"
  std::string id;     // empty: none
  std::string data;   // may hold line breaks
};

// The event as bytes on the wire. CR, LF and NUL cannot break out of a field.
[[nodiscard]] std::string format_event(const Event& event);

// The head of an answer that another server made and that was checked: no control characters, no framing of that connection.
struct RelayedHead {
  int status = 200;
  std::string reason;
  Pairs headers;
  std::optional<std::uint64_t> length;
  bool bodiless = false;
};

// Implemented by the connection: a body that is sent, or received, in pieces.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // Sends the head (once), then pieces of the body, each within the write timeout.
  virtual task<void> start(std::string content_type) = 0;
  virtual task<void> write(std::string bytes) = 0;
  // The same for a body whose length is known. When fewer bytes follow the connection ends, which tells the client.
  virtual task<void> start_sized(Response, std::uint64_t) { co_return caisson::fail(Code::internal, "no sized response here"); }
  // The same for an answer that another server made: status, reason and headers are sent as they are, with the first piece of the
  // body. Without a length the body ends with the handler.
  virtual task<void> start_relayed(RelayedHead, std::string) { co_return caisson::fail(Code::internal, "nothing to relay here"); }
  // The body stays incomplete: the connection ends without the mark of an end.
  virtual void cut() {}
  // Waits for room for the next piece of a file, before it is read or written. Code::limit: no room is left; the handler's
  // response is then replaced by 429 or 503.
  virtual task<void> reserve(std::size_t /*bytes*/) { co_return Status{}; }
  // Waits for a turn, which the caller holds while it does work that grows with `bytes`. Small work needs no turn.
  virtual task<Lane::Turn> work(std::size_t /*bytes*/) { co_return Lane::Turn(); }
  // Waits for a turn and reserves room for an answer made of `bytes` of kept output. Code::limit: no room is left; the handler's
  // response is then replaced by 429 or 503, unless the request has been carried out.
  virtual task<Lane::Turn> answer_of(std::size_t /*bytes*/, bool /*carried_out*/) { co_return Lane::Turn(); }
  // The next piece of the request's body, "" at its end; for routes with kStreamedBody. io: the client is gone or too slow.
  virtual task<std::string> read_piece() { co_return caisson::fail(Code::internal, "no streamed request here"); }
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
