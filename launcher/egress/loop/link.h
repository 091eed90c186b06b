// One end of a SOCK_SEQPACKET pair with another of our processes. Messages go out in order; what the socket does not take waits
// here, up to a bound.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/egress/loop/poll.h"

namespace caisson::egress {

class Link final : Poll::Source {
 public:
  static constexpr std::size_t kMostWaiting = 1024;  // messages

  // A message with its descriptors; false: it is not one that this peer may send, and the connection ends.
  using Heard = std::function<bool(std::string_view message, std::vector<Fd> fds)>;
  // `ended` is called once, from the loop, and not after the link is destroyed: the peer is gone, or said what it may not.
  Link(Poll& poll, Fd fd, Heard heard, std::function<void()> ended);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // False where too many wait: nothing was sent.
  [[nodiscard]] bool say(std::string message, Fd fd = {}, Fd second = {});
  [[nodiscard]] bool room() const { return waiting_.size() < kMostWaiting / 2; }
  [[nodiscard]] bool open() const { return open_; }
  // The peer said what it may not. It does not know that it is not heard any more: whoever finds this ends, to be joined anew.
  [[nodiscard]] bool broken() const { return broken_; }
  // Sends what waits, as long as the socket takes it.
  void flush();

 private:
  struct Waiting {
    std::string text;
    Fd fd, second;
  };
  void ready(std::uint32_t events) override;
  void end();
  bool hear_one();

  Poll& poll_;
  Fd fd_;
  const Heard heard_;
  const std::function<void()> ended_;
  std::deque<Waiting> waiting_;
  bool open_ = true, blocked_ = false, broken_ = false;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

// Messages of fixed native structs, then text.
template <class Head>
std::string message_of(const Head& head, std::string_view text = {}) {
  std::string out(reinterpret_cast<const char*>(&head), sizeof head);
  out += text;
  return out;
}

}  // namespace caisson::egress
