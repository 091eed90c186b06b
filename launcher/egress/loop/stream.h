// A connected socket of which reading and writing never wait. It is watched from when somebody waits for it, once and by edges,
// which cost a turn of the loop each, and remembers what would not block; whoever gets "would block" from it is told when that
// changes, either as a coroutine (Stirred) or as a Stream::Hearer.
#pragma once

#include <sys/types.h>

#include <coroutine>
#include <cstdint>
#include <span>
#include <string_view>

#include "launcher/common/base/fd.h"
#include "launcher/egress/loop/poll.h"

namespace caisson::egress {

class Stream final : Poll::Source {
 public:
  class Hearer {
   public:
    virtual void stirred() = 0;  // something came, room was made, or the peer is gone

   protected:
    ~Hearer() = default;
  };
  // `fd` is a socket; it becomes non-blocking.
  Stream(Poll& poll, Fd fd);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] Poll& poll() const { return poll_; }
  // As recv(2) and send(2): -1 with EAGAIN where it would block; what was peeked stays.
  [[nodiscard]] ssize_t read(std::span<char> into);
  [[nodiscard]] ssize_t peek(std::span<char> into);
  [[nodiscard]] ssize_t write(std::string_view bytes);
  // For splice(2): what it found. Until the next edge it would block.
  void reading_blocks() { readable_ = false; }
  void writing_blocks() { writable_ = false; }
  [[nodiscard]] bool readable() const { return readable_; }
  [[nodiscard]] bool writable() const { return writable_; }
  // The peer sends nothing more, or is gone; what it sent before may still be there to be read.
  [[nodiscard]] bool hung_up() const { return hung_up_; }
  // The connection failed: what is written reaches nobody. A peer that only ended its side does not show here.
  [[nodiscard]] bool broken() const { return broken_; }

  void end_of_writing();      // shutdown(2): the peer reads the end
  void reset_on_close();      // the peer gets RST instead of an orderly end: what follows is not what it asked for
  [[nodiscard]] Fd take();    // the socket, for another owner; nothing may be asked of the stream any more
  void hear(Hearer* hearer);  // nullptr: nobody

 private:
  void ready(std::uint32_t events) override;

  Poll& poll_;
  Fd fd_;
  Hearer* hearer_ = nullptr;
  bool readable_ = true, writable_ = true, hung_up_ = false, broken_ = false, watched_ = false;
};

// co_await: true when something happens at one of the streams, false at the deadline. Only for who has met "would block" since
// the last wait: an edge that came before is not reported again, but at the first wait.
class Stirred final : Stream::Hearer {
 public:
  Stirred(std::int64_t deadline_us, Stream& one, Stream* other = nullptr);
  ~Stirred() { forget(); }
  Stirred(const Stirred&) = delete;
  Stirred& operator=(const Stirred&) = delete;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting);
  bool await_resume() const { return stirred_; }

 private:
  void stirred() override;
  void forget();

  const std::int64_t deadline_us_;
  Stream &one_, *other_;
  Poll::Timer timer_;
  std::coroutine_handle<> waiting_;
  bool stirred_ = false;
};

// co_await: true when what this belongs to was told with tell(), false at the deadline.
class Told {
 public:
  Told(Poll& poll, std::int64_t deadline_us);
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  void tell();
  bool await_ready() const { return told_; }
  void await_suspend(std::coroutine_handle<> waiting);
  bool await_resume() const { return told_; }

 private:
  const std::int64_t deadline_us_;
  Poll::Timer timer_;
  std::coroutine_handle<> waiting_;
  bool told_ = false;
};

}  // namespace caisson::egress
