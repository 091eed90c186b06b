// The event loop: who was late is not the one that is ended for it.
#include "launcher/base/loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "launcher/base/sys.h"

namespace caisson {
namespace {

struct Late : testing::Test {
  std::unique_ptr<Loop> loop = std::move(*Loop::create({}));
  std::pair<Fd, Fd> first = *sys::pipe(), answers = *sys::pipe();

  // A callback that keeps the loop from everything else.
  void block(int ms) {
    ASSERT_EQ(::write(first.second.get(), "x", 1), 1);
    ASSERT_TRUE(loop->watch(first.first.get(), EPOLLIN, [this, ms](std::uint32_t) {
      loop->unwatch(first.first.get());
      ::usleep(static_cast<useconds_t>(ms) * 1000);
    }));
  }
};

TEST_F(Late, AnswersThatCameInTimeAreHeardBeforeTheirDeadline) {
  bool fired = false;
  const auto deadline = loop->after(300'000, [&] {
    fired = true;
    loop->stop();
  });
  block(1200);
  ASSERT_EQ(::write(answers.second.get(), "123", 3), 3);
  ASSERT_TRUE(loop->watch(answers.first.get(), EPOLLIN, [&](std::uint32_t) {  // one a turn
    char answer = 0;
    ASSERT_EQ(::read(answers.first.get(), &answer, 1), 1);
    if (answer != '3') return;
    loop->cancel(deadline);
    loop->stop();
  }));
  ASSERT_TRUE(loop->run());
  EXPECT_FALSE(fired);
}

TEST_F(Late, ADeadlineFiresAllTheSameAndInItsOrder) {
  std::string order;
  loop->after(300'000, [&] { order += "a"; });
  loop->after(301'000, [&] {
    order += "b";
    loop->stop();
  });
  block(1200);
  const std::int64_t begin = sys::monotonic_us();
  ASSERT_TRUE(loop->run());
  EXPECT_EQ(order, "ab");
  EXPECT_GT(sys::monotonic_us() - begin, 1'200'000);
}

TEST_F(Late, WhoIsAlwaysLateFiresToo) {
  int fired = 0;
  const std::function<void()> slow = [&] {
    ::usleep(700'000);
    if (++fired == 3) return loop->stop();
    loop->after(0, slow);
    loop->after(1000, [] {});  // due while the next one sleeps
  };
  loop->after(0, slow);
  ASSERT_TRUE(loop->run());
  EXPECT_EQ(fired, 3);
}

}  // namespace
}  // namespace caisson
