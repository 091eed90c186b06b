// A connection to the X server that never blocks: requests wait in a bounded queue, replies are bounded in size and awaited for a
// bounded time. The server is hostile: what breaks the protocol ends the connection. One thread, by the loop.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "agent/display/x_setup.h"
#include "agent/display/x_wire.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/loop.h"

namespace caisson::display {

// Connects to /tmp/.X11-unix/X<number>, again and again until the deadline (monotonic): a server that starts has no socket yet.
struct Connected {
  Fd socket;
  Setup setup;
};
[[nodiscard]] Result<Connected> connect_display(int number, std::int64_t deadline_us);

class Link {
 public:
  // `event`: each event of 32 bytes. `broken`: the connection is over, with the reason; called once, and nothing after it.
  Link(Loop& loop, Connected connected, std::int64_t answer_limit_us, std::function<void(std::string_view)> event,
       std::function<void(const Error&)> broken);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { loop_.unwatch(socket_.get()); }
  [[nodiscard]] Status start();

  // What a request gives, to be awaited where it is asked: the reply with its head of 32 bytes, or for check() nothing.
  // Errors: timeout; io, with the server's error code; limit, when the server takes no more requests.
  class Answer {
   public:
    Answer(Link& link, std::uint64_t number);
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    ~Answer();
    [[nodiscard]] bool await_ready() const { return result_.has_value(); }
    void await_suspend(std::coroutine_handle<> waiting) { waiting_ = waiting; }
    [[nodiscard]] Result<std::string> await_resume() { return std::move(*result_); }

   private:
    friend Link;
    void give(Result<std::string> result);
    Link& link_;
    const std::uint64_t number_;
    Loop::TimerId timer_ = 0;
    std::optional<Result<std::string>> result_;
    std::coroutine_handle<> waiting_;
  };
  // `most`: bytes of the reply; a longer one ends the connection.
  [[nodiscard]] Answer ask(std::string request, std::size_t most = 4096);
  // Of a request without a reply: whether the server took it. The server has carried out all that was sent before.
  [[nodiscard]] Answer check(std::string request, Fd fd = Fd());
  // Until the server has carried out all that was sent.
  [[nodiscard]] Answer sync();
  // A request without a reply, whose error is of no interest.
  void send(std::string request, Fd fd = Fd());
  // timeout: the server has owed an answer, or taken no requests, for longer than an answer may take.
  [[nodiscard]] Status ready() const;
  // The server has not read what it was sent lately: answers to others can be left out.
  [[nodiscard]] bool is_busy() const { return out_bytes_ > 1024 * 1024; }
  // Writes what it can.
  void flush();
  // For a program that is about to end: waits until the server has carried out what was sent, or until the deadline (monotonic).
  // A server drops what it has not read of a client that is gone. Nobody who waits for an answer goes on.
  void finish(std::int64_t deadline_us);

  [[nodiscard]] std::uint32_t new_id() { return setup_.id_base | ((++last_id_) & setup_.id_mask); }
  [[nodiscard]] const Setup& setup() const { return setup_; }
  [[nodiscard]] Loop& loop() const { return loop_; }
  // Of a window: that it was made by the X server itself.
  [[nodiscard]] bool is_servers(std::uint32_t id) const { return owner(id) == 0; }
  // Which client made it: the same number for each of its ids.
  [[nodiscard]] std::uint32_t owner(std::uint32_t id) const { return id & 0x1FFFFFFF & ~setup_.id_mask; }

 private:
  struct Pending {
    std::uint64_t number;
    std::size_t most;  // 0: no reply, an error or the next answer tells
    std::int64_t asked_us;
    Answer* answer;  // nullptr: nobody waits any more
  };
  struct Chunk {
    std::string bytes;
    std::size_t written = 0;
    Fd fd;  // goes with the first byte
  };
  std::uint64_t expect(std::size_t most);
  void on_ready(std::uint32_t events);
  [[nodiscard]] Status read_some();
  [[nodiscard]] Status write_some();
  [[nodiscard]] Status take(std::string_view& bytes);
  [[nodiscard]] Status dispatch(std::string_view message);
  // Of answers that came out of turn: those before `number` have none.
  void settle_before(std::uint64_t number);
  void give(Result<std::string> result);
  void end(const Error& error);

  Loop& loop_;
  Fd socket_;
  Setup setup_;
  const std::int64_t answer_limit_us_;
  std::function<void(std::string_view)> event_;
  std::function<void(const Error&)> broken_;
  std::deque<Chunk> out_;
  std::size_t out_bytes_ = 0;
  std::int64_t stuck_since_us_ = 0;  // 0: all that was sent went out
  std::string in_;
  std::uint64_t sent_ = 0, heard_ = 0;  // numbers of requests
  std::uint64_t last_expected_ = 0;
  std::deque<Pending> pending_;
  std::uint32_t last_id_ = 0;
  bool ended_ = false, finishing_ = false;
};

}  // namespace caisson::display
