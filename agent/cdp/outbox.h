// What waits to be written to one descriptor: messages with up to two changes each, written in pieces (writev(2)), so that a new
// id does not cost a second copy of a large message. The NUL after each message is added here.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/cdp/buffer.h"
#include "agent/cdp/scan.h"

namespace caisson::cdp {

struct Change {
  Span instead_of;  // empty: put in before `begin`; `end` is then `begin`
  std::string text;
};

// A message as it will be written. Changes are in the order of their places and do not overlap.
class Outgoing {
 public:
  Outgoing() = default;
  explicit Outgoing(Buffer body, std::vector<Change> changes = {}) : body_(std::move(body)), changes_(std::move(changes)) {
    size_ = body_.size() + 1;
    for (const Change& change : changes_) size_ = size_ - change.instead_of.size() + change.text.size();
  }
  [[nodiscard]] static Outgoing of(std::string_view text) {
    Buffer body;
    if (!body.append(text)) return {};
    return Outgoing(std::move(body));
  }

  [[nodiscard]] std::size_t size() const { return size_; }  // with the NUL; 0: there was no memory
  [[nodiscard]] std::string text() const;                   // without it; for messages that are known to be small
  // Adds the pieces from byte `from` on; at most kMaxPieces.
  static constexpr std::size_t kMaxPieces = 6;
  [[nodiscard]] std::size_t pieces(std::size_t from, std::span<iovec, kMaxPieces> out) const;

 private:
  Buffer body_;
  std::vector<Change> changes_;
  std::size_t size_ = 0;
};

class Outbox {
 public:
  void push(Outgoing message) {
    bytes_ += message.size();
    queue_.push_back(std::move(message));
  }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_ - written_; }
  // Of the messages behind the one that is being written.
  [[nodiscard]] std::size_t waiting() const { return queue_.empty() ? 0 : bytes_ - queue_.front().size(); }
  void clear() { *this = Outbox(); }

  enum class Wrote { all, some, broken };
  // Until the descriptor (non-blocking) takes no more.
  [[nodiscard]] Wrote write_to(int fd);

 private:
  std::deque<Outgoing> queue_;
  std::size_t bytes_ = 0;    // of all in the queue
  std::size_t written_ = 0;  // of the first
};

}  // namespace caisson::cdp
