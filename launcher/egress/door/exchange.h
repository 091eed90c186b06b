// One request of plain HTTP and its answer. Both messages move at the same time, since a server may answer before it has read the
// whole request, and says that it waits for a body in an answer of its own (100).
#pragma once

#include <cstdint>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/egress/door/connection.h"
#include "launcher/egress/door/transfer.h"
#include "launcher/egress/parse/http_answer.h"
#include "launcher/egress/parse/http_head.h"

namespace caisson::egress {

// The head to be sent on: what was judged, and no field that is of the client's connection alone. last: is_last().
[[nodiscard]] std::string request_text(const RequestHead& head, const HostPort& place, bool last);
[[nodiscard]] std::string answer_text(const AnswerHead& head, int client_minor, bool keep_alive);

class Exchange {
 public:
  enum class End {
    done,
    switched,     // to WebSocket: what follows is no HTTP
    stale,        // the server had closed a kept connection before it saw the request
    client_gone,  // or ended before its request did
    bad_request,  // its body is malformed
    unreachable,  // the server ended or failed before it answered
    bad_answer,
    late,    // the server says nothing
    broken,  // after a part of the answer was sent on: the client must not take it for all
  };
  struct Asked {
    std::string text;  // the head's
    Framing body;
    int minor = 1;
    bool keep_alive = true, to_head = false, websocket = false, kept = false;  // kept: over a connection that was used before
    bool last = false;                                                         // is_last()
  };
  Exchange(Connection& connection, Asked asked);
  [[nodiscard]] Task<End> run();

  [[nodiscard]] bool server_stays() const {
    return !asked_.last && request_.done() && answer_head_.keep_alive && from_server_.empty();
  }
  [[nodiscard]] bool client_stays() const { return client_stays_ && request_.done(); }
  [[nodiscard]] std::uint64_t up() const { return request_.moved(); }
  [[nodiscard]] std::uint64_t down() const { return answer_.moved(); }

 private:
  enum class Next { again, wait, throttled, over };
  [[nodiscard]] Next turn();
  [[nodiscard]] Next move_request();
  [[nodiscard]] Next move_answer();
  [[nodiscard]] Next read_head();
  [[nodiscard]] Next take_head(const Outcome& read);
  [[nodiscard]] Next over(End end) { return end_ = end, Next::over; }

  Connection& connection_;
  const Asked asked_;
  std::string from_server_;  // read, and of no message yet
  Transfer request_, answer_;
  HeadScan scan_;
  AnswerHead answer_head_;  // its views are of no use after take_head()
  bool answered_ = false, sent_some_ = false, request_failed_ = false, client_stays_ = false;
  End end_ = End::done;
};

}  // namespace caisson::egress
