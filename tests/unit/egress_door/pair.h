// A loop, and socket pairs in the place of what comes from outside.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "launcher/common/base/sys.h"
#include "launcher/egress/loop/poll.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

class PollTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Poll::create();
    ASSERT_TRUE(made) << made.error().text();
    poll_ = std::move(*made);
  }
  static std::pair<Fd, Fd> pair(int type = SOCK_STREAM) {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
    return {Fd(fds[0]), Fd(fds[1])};
  }
  static void say(const Fd& to, std::string_view text) {
    ASSERT_EQ(::write(to.get(), text.data(), text.size()), std::ssize(text));
  }
  // What is there now; "" at the end, or where there is nothing.
  static std::string read_now(const Fd& from, std::size_t most = 1 << 20) {
    std::string out(most, '\0');
    const ssize_t got = ::recv(from.get(), out.data(), out.size(), MSG_DONTWAIT);
    out.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return out;
  }
  static bool at_end(const Fd& of) {
    char byte = 0;
    return ::recv(of.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  // Until the fact holds, at most ten seconds.
  template <class Fact>
  void until(Fact fact) {
    Poll::Timer tick(*poll_, [] {});
    const std::int64_t end_us = sys::monotonic_us() + 10'000'000;
    bool held = false;
    ASSERT_TRUE(poll_->run([&] {
      held = fact();
      tick.set(sys::monotonic_us() + 5'000);
      return held || sys::monotonic_us() > end_us;
    }));
    EXPECT_TRUE(held);
  }
  // A stream is watched from when somebody waits for it.
  void watch(Stream& stream) { stream.hear(&somebody_); }
  std::unique_ptr<Poll> poll_;

 private:
  struct Somebody final : Stream::Hearer {
    void stirred() override {}
  } somebody_;
};

}  // namespace caisson::egress
