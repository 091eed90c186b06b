// Non-blocking ends of pipes and terminals: a reader that drains into a sink without ever blocking the thread, and a
// writer with a bounded queue. One owner each; the coroutines that wait hold a shared_ptr to that owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/http/budget.h"
#include "agent/http/coro.h"
#include "agent/services/common/keep.h"
#include "launcher/common/base/fd.h"

namespace caisson::services {

using Descriptor = asio::posix::stream_descriptor;

enum class ReadEnd { blocked, closed, more };

// Reads the available bytes, at most `limit`, and hands each piece to sink(std::string_view). All streams of the process share
// one buffer (one thread), so an idle stream costs no memory. With a record, pieces land in its `stream`, and the sink calls
// advance() when it has stored one.
template <class Sink>
[[nodiscard]] ReadEnd read_available(Descriptor& from, std::size_t limit, Sink&& sink, const Keep::Record* record = nullptr,
                                     int stream = 0);

namespace detail {
// One read(2) into the shared buffer. closed: end of file, or the other side of a terminal is gone (EIO).
struct ReadPiece {
  ReadEnd end;
  std::string_view bytes;
};
[[nodiscard]] ReadPiece read_piece(int fd, const Keep::Record* record, int stream);
}  // namespace detail

template <class Sink>
ReadEnd read_available(Descriptor& from, std::size_t limit, Sink&& sink, const Keep::Record* record, int stream) {
  if (!from.is_open()) return ReadEnd::closed;
  std::size_t total = 0;
  while (total < limit) {
    const detail::ReadPiece piece = detail::read_piece(from.native_handle(), record, stream);
    if (piece.end != ReadEnd::more) return piece.end;
    total += piece.bytes.size();
    sink(piece.bytes);
    if (!from.is_open()) return ReadEnd::closed;
  }
  return ReadEnd::more;
}

// The most input that may wait for one program to read it.
inline constexpr std::size_t kMaxWaitingInput = 1024 * 1024;

// Bytes on their way to a program that may read slowly.
class WriteQueue {
 public:
  // share: pays for the waiting bytes.
  WriteQueue(asio::any_io_executor executor, Fd fd, http::Budget::Share share = {});
  // Queued whole or not at all. limit: the program does not read; io: it has closed its end.
  Status push(std::string_view bytes, std::size_t most_waiting);
  // Writes what the kernel takes now. True: something is left, wait for wait_write and call again.
  [[nodiscard]] bool flush();
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] bool open() const { return to_.is_open(); }
  [[nodiscard]] Descriptor& descriptor() { return to_; }
  void close();
  void close_when_empty();
  [[nodiscard]] http::Budget::Share take_share() { return std::move(share_); }

 private:
  Descriptor to_;
  http::Budget::Share share_;
  std::string waiting_;   // empty when all how much of it is written
  std::size_t done_ = 0;  // how much of it is written
  bool close_later_ = false;
};

[[nodiscard]] Descriptor make_descriptor(const asio::any_io_executor& executor, Fd fd);
void close_quietly(Descriptor& descriptor);

}  // namespace caisson::services
