#include "agent/bridge/courier_client.h"

#include <gtest/gtest.h>

#include "launcher/common/base/sys.h"

namespace caisson::bridge {
namespace {

using courier::Type;
using std::chrono::milliseconds;

// The agent's end, and that of a courier which answers when the test says so.
class Courier : public ::testing::Test {
 protected:
  Courier() : Courier(*sys::seqpacket_pair()) {
    client_.on_spans = [this](std::uint32_t count, const Status& done) { (done ? posted_ : lost_) += count; };
    spawn(io_.get_executor(), "listen", client_.listen());
  }
  explicit Courier(std::pair<Fd, Fd> pair)
      : client_(io_.get_executor(), std::move(pair.first)), courier_(io_.get_executor(), std::move(pair.second)) {}

  asio::awaitable<void> settle(milliseconds limit) {
    co_await client_.settle(limit);
    settled_ = true;
  }
  void begin_to_settle(milliseconds limit) {
    asio::co_spawn(io_, settle(limit), [](const std::exception_ptr&) {});
    io_.poll();
  }

  asio::io_context io_{1};
  CourierClient client_;
  courier::Line courier_;
  std::uint32_t posted_ = 0, lost_ = 0;
  bool settled_ = false;
};

TEST_F(Courier, SettlesAtOnceWithoutSpans) {
  begin_to_settle(std::chrono::hours(1));
  EXPECT_TRUE(settled_);
}

TEST_F(Courier, SettlesWhenTheLastOrderIsAnswered) {
  ASSERT_TRUE(client_.post_spans("a", 3));
  ASSERT_TRUE(client_.post_spans("b", 4));
  begin_to_settle(std::chrono::hours(1));
  ASSERT_TRUE(courier_.try_send({Type::spans_posted, 3}, ""));
  io_.poll();
  EXPECT_FALSE(settled_);
  ASSERT_TRUE(courier_.try_send({Type::spans_lost, 4}, "why"));
  io_.poll();
  EXPECT_TRUE(settled_);
  EXPECT_EQ(posted_, 3U);
  EXPECT_EQ(lost_, 4U);
}

TEST_F(Courier, SettlesForSoLongAtMost) {
  ASSERT_TRUE(client_.post_spans("a", 1));
  begin_to_settle(milliseconds(20));
  EXPECT_FALSE(settled_);
  while (!settled_ && io_.run_one_for(std::chrono::seconds(30)) > 0) continue;
  EXPECT_TRUE(settled_);
}

TEST_F(Courier, AFullLineTakesNoSpans) {
  const std::string body(courier::kMaxText, 'a');
  int taken = 0;
  while (taken < 1000 && client_.post_spans(body, 1)) ++taken;
  EXPECT_LT(taken, 16);
}

}  // namespace
}  // namespace caisson::bridge
