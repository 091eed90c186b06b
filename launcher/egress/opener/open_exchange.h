// One request whose head has its secrets, and its answer without them. What goes out is as it came; what comes back is read,
// searched and framed anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/egress/loop/byte_budget.h"
#include "launcher/egress/opener/bindings.h"
#include "launcher/egress/opener/tls.h"
#include "launcher/egress/parse/http_answer.h"
#include "launcher/egress/parse/http_body.h"

namespace caisson::egress {

class OpenExchange {
 public:
  enum class End {
    done,
    unreachable,  // the server has gone before it answered
    bad_answer,   // it is no answer, or one that cannot be searched; nothing of it was passed on
    bad_request,  // the request's body is malformed
    broken,       // in the middle: whoever reads must see that something is missing
    idle,
  };
  struct Asked {
    std::string text;  // the head, as it goes out
    Framing body;
    int minor = 1;
    bool keep_alive = true, to_head = false, websocket = false;
    bool searched = true;  // the answer has to be one that can be searched
  };
  // ahead: what was read of the session behind the head; what is left of it is the next request's. forms: of what the server may
  // know. bytes: of the domain.
  OpenExchange(Tls& client, Tls& server, std::string& ahead, Asked asked, const Forms& forms, ByteBudget& bytes);
  [[nodiscard]] Task<End> run(std::int64_t idle_us);

  [[nodiscard]] bool goes_on() const { return goes_on_; }  // both ends may carry another request
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::uint64_t up() const { return up_; }
  [[nodiscard]] std::uint64_t down() const { return down_; }
  [[nodiscard]] std::uint64_t scrubbed() const { return scrubber_.found() + in_heads_; }

 private:
  enum class Next { again, wait, over };
  Next turn();
  Next move_request();
  Next move_answer();
  Next read_answer();
  Next take_head(const Outcome& read);
  Next take_body(std::string_view bytes);
  void end_body();
  void put_head(const AnswerHead& head);
  [[nodiscard]] std::string scrubbed_text(std::string_view text);
  void put(std::string_view content);
  Next over(End end) { return end_ = end, Next::over; }

  Tls &client_, &server_;
  std::string& ahead_;
  const Asked asked_;
  const Forms& forms_;
  ByteBudget& bytes_;
  Scrubber scrubber_;
  BodyEnd request_, answer_;
  BodyKind kind_ = BodyKind::none;  // of the answer's body
  HeadScan scan_;
  AnswerHead head_;
  std::string to_server_, to_client_, from_server_;
  bool answered_ = false, answer_over_ = false, passed_on_ = false, switched_ = false, request_lost_ = false, goes_on_ = false;
  int status_ = 0;
  std::uint64_t up_ = 0, down_ = 0, in_heads_ = 0;
  End end_ = End::done;
};

}  // namespace caisson::egress
