// One message of HTTP on its way from one connection to another: a head that was judged and written anew, then the body as it is,
// up to where the message ends. What was read beyond that is kept: it is the next message's.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/egress/door/limits.h"
#include "launcher/egress/loop/stream.h"
#include "launcher/egress/parse/http_body.h"

namespace caisson::egress {

class Transfer {
 public:
  enum class Step {
    moved,    // something was read or written: there may be more to do at once
    blocked,  // neither is possible now
    throttled,
    sender_gone,  // before its message ended
    failed,       // the other one takes nothing more
    wrong,        // the body's framing is malformed
  };
  // `ahead` holds what was read of `from` and belongs to no message yet; it outlives this.
  Transfer(Stream& from, Stream& to, std::string& ahead, ByteBudget& bytes)
      : from_(from), to_(to), ahead_(ahead), bytes_(bytes) {}
  // Bytes that go before all that is read from now on: a head.
  void put(std::string_view text) { out_ += text; }
  void set_body(Framing framing) { body_ = BodyEnd(framing), until_close_ = framing.kind == BodyKind::until_close; }
  [[nodiscard]] Step step();
  // All of the body was read and judged, and all that was put is written.
  [[nodiscard]] bool done() const { return all_read() && out_.empty(); }
  [[nodiscard]] bool drained() const { return out_.empty(); }
  [[nodiscard]] std::uint64_t moved() const { return moved_; }

 private:
  [[nodiscard]] bool all_read() const { return until_close_ ? closed_ : body_.ended(); }
  [[nodiscard]] Step write();
  [[nodiscard]] Step read(std::size_t most);
  [[nodiscard]] Step judge(std::string_view bytes);

  Stream &from_, &to_;
  std::string& ahead_;
  ByteBudget& bytes_;
  std::string out_;  // judged, and not written
  BodyEnd body_;
  bool until_close_ = false, closed_ = false;
  std::uint64_t moved_ = 0;
};

}  // namespace caisson::egress
