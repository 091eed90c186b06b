// The event loop: who was late is not the one that is ended for it; an end is told of once, whenever it is asked for.
#include "launcher/common/base/loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "launcher/common/base/sys.h"

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

struct Children : testing::Test {
  std::unique_ptr<Loop> loop = std::move(*Loop::create({}));

  static pid_t child() {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(7);
    return pid;
  }
  // One that the loop has reaped, though nobody had asked for it yet.
  pid_t reaped() {
    const pid_t stray = child(), expected = child();
    siginfo_t info;
    for (const pid_t pid : {stray, expected}) EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    loop->on_exit(expected, [this](const ChildExit&) { loop->stop(); });
    EXPECT_TRUE(loop->run());
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(stray), &info, WEXITED | WNOWAIT), -1);
    return stray;
  }
  // What is told of `pid` until a quarter of a second has passed; where something should be, after that.
  std::vector<ChildExit> told(pid_t pid, bool forget = false) {
    std::vector<ChildExit> out;
    loop->on_exit(pid, [&](const ChildExit& exit) { out.push_back(exit); });
    if (forget) loop->forget_exit(pid);
    else EXPECT_TRUE(loop->run([&out] { return !out.empty(); }));
    loop->after(250'000, [this] { loop->stop(); });
    EXPECT_TRUE(loop->run());
    return out;
  }
};

TEST_F(Children, TheEndIsToldOnce) {
  const auto exits = told(child());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_FALSE(exits[0].signaled);
  EXPECT_EQ(exits[0].status, 7);
}

TEST_F(Children, OfAChildThatWasReapedBeforeTheEndIsToldToo) {
  const auto exits = told(reaped());
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_TRUE(exits[0].signaled);
}

TEST_F(Children, WhatIsForgottenIsNotTold) {
  EXPECT_TRUE(told(reaped(), true).empty());
  EXPECT_TRUE(told(child(), true).empty());
}

// Of two that are ready in one round, the first that is told puts another file in the place of the second.
TEST(Loop, WhatGetsTheNumberOfARemovedDescriptorHearsNothingOfItsEvents) {
  const std::unique_ptr<Loop> loop = std::move(*Loop::create({}));
  const std::pair<Fd, Fd> one = *sys::pipe(), two = *sys::pipe(), quiet = *sys::pipe();
  int told = 0, stale = 0;
  const auto on_ready = [&](int own, int other) {
    ++told;
    for (const int fd : {own, other}) loop->unwatch(fd);
    ASSERT_EQ(::dup2(quiet.first.get(), other), other);
    ASSERT_TRUE(loop->watch(other, EPOLLIN, [&](std::uint32_t) { ++stale; }));
    loop->after(20'000, [&] { loop->stop(); });
  };
  const int a = one.first.get(), b = two.first.get();
  for (const std::pair<Fd, Fd>* pipe : {&one, &two}) ASSERT_EQ(::write(pipe->second.get(), "x", 1), 1);
  ASSERT_TRUE(loop->watch(a, EPOLLIN, [&](std::uint32_t) { on_ready(a, b); }));
  ASSERT_TRUE(loop->watch(b, EPOLLIN, [&](std::uint32_t) { on_ready(b, a); }));
  ASSERT_TRUE(loop->run());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(stale, 0);
}

}  // namespace
}  // namespace caisson
