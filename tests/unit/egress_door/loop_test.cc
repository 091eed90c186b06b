// The loop of door and dialer, its streams and its lines.
#include <sys/mman.h>

#include <array>
#include <list>
#include <vector>

#include "launcher/common/base/task.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/egress/loop/launcher_line.h"
#include "launcher/egress/loop/link.h"
#include "launcher/egress/loop/stream.h"
#include "tests/unit/egress_door/pair.h"

namespace caisson::egress {
namespace {

using LoopTest = PollTest;

TEST_F(LoopTest, TimersFireInTheirOrderAndNotAfterTheyAreCleared) {
  std::string fired;
  Poll::Timer a(*poll_, [&] { fired += 'a'; }), b(*poll_, [&] { fired += 'b'; }), c(*poll_, [&] { fired += 'c'; });
  const std::int64_t now = sys::monotonic_us();
  a.set(now + 3000), b.set(now + 1000), c.set(now + 2000);
  c.clear();
  until([&] { return fired.size() == 2; });
  EXPECT_EQ(fired, "ba");
}

TEST_F(LoopTest, ATimerMayEndItselfAndOthersThatAreDue) {
  struct {
    int fired = 0;
    std::list<Poll::Timer> timers;
  } all;
  for (int i = 0; i < 3; ++i)
    all.timers.emplace_back(*poll_, [&all] {
      ++all.fired;
      all.timers.clear();
    });
  for (Poll::Timer& timer : all.timers) timer.set(1);
  until([&] { return all.fired > 0; });
  EXPECT_EQ(all.fired, 1);
}

TEST_F(LoopTest, ALinkThatIsGoneTellsNobodyOfItsEnd) {
  auto [ours, theirs] = pair(SOCK_SEQPACKET);
  auto [other, others] = pair(SOCK_SEQPACKET);
  bool told = false;
  auto link = std::make_unique<Link>(*poll_, std::move(ours), [](auto, auto) { return true; }, [&] { told = true; });
  bool closed = false;
  // In the same turn, after the end of the first was seen.
  Link second(*poll_, std::move(other), [&](auto, auto) { return closed = !link->open(), link.reset(), true; }, [] {});
  theirs.reset();
  say(others, "x");
  until([&] { return link == nullptr; });
  until([&] { return true; });
  EXPECT_TRUE(closed) << "the first was heard last: nothing is shown";
  EXPECT_FALSE(told);
}

TEST_F(LoopTest, ATimerThatIsAlwaysDueKeepsNoEventFromBeingHeard) {
  auto [ours, theirs] = pair();
  Stream stream(*poll_, std::move(ours));
  std::unique_ptr<Poll::Timer> timer;
  timer = std::make_unique<Poll::Timer>(*poll_, [&] { timer->set(1); });
  timer->set(1);
  watch(stream);
  stream.reading_blocks();
  say(theirs, "x");
  until([&] { return stream.readable(); });
}

Task<bool> wait_for(Stream& stream, std::int64_t deadline_us, bool& done) {
  const bool stirred = co_await Stirred(deadline_us, stream);
  done = true;
  co_return stirred;
}

TEST_F(LoopTest, AStreamWakesWhoeverWaitsOrItsDeadlineDoes) {
  auto [ours, theirs] = pair();
  Stream stream(*poll_, std::move(ours));
  std::array<char, 8> buffer;
  EXPECT_EQ(stream.read(buffer), -1);
  watch(stream);
  int turns = 0;
  until([&] { return ++turns > 2; });  // what it is told of its state at first
  bool done = false;
  Task<bool> late = wait_for(stream, sys::monotonic_us() + 1000, done);
  until([&] { return done; });
  EXPECT_FALSE(late.take());
  done = false;
  Task<bool> woken = wait_for(stream, sys::monotonic_us() + 10'000'000, done);
  say(theirs, "abc");
  until([&] { return done; });
  EXPECT_TRUE(woken.take());
  EXPECT_EQ(stream.read(buffer), 3);
}

TEST_F(LoopTest, ATaskThatGoesWhileItWaitsIsNotWoken) {
  auto [ours, theirs] = pair();
  Stream stream(*poll_, std::move(ours));
  bool done = false;
  {
    const Task<bool> gone = wait_for(stream, sys::monotonic_us() + 1000, done);
  }
  say(theirs, "abc");
  int turns = 0;
  until([&] { return ++turns > 3; });
  EXPECT_FALSE(done);
}

TEST_F(LoopTest, TheEndIsFoundEvenBehindWhatWasReadShort) {
  auto [ours, theirs] = pair();
  Stream stream(*poll_, std::move(ours));
  say(theirs, "abc");
  theirs.reset();
  watch(stream);
  until([&] { return stream.hung_up(); });
  std::array<char, 8> buffer;
  EXPECT_EQ(stream.read(buffer), 3);
  EXPECT_TRUE(stream.readable());
  EXPECT_EQ(stream.read(buffer), 0);
}

TEST_F(LoopTest, ALinkSendsInOrderWhateverTheSocketTakes) {
  auto [ours, theirs] = pair(SOCK_SEQPACKET);
  Link link(*poll_, std::move(ours), [](std::string_view, const std::vector<Fd>&) { return true; }, [] {});
  const std::string padding(8000, 'x');
  int sent = 0, got = 0;
  while (link.say(std::to_string(sent) + padding)) ++sent;
  EXPECT_FALSE(link.room());
  until([&] {
    for (std::string text = read_now(theirs); !text.empty(); text = read_now(theirs), ++got)
      EXPECT_EQ(text, std::to_string(got) + padding);
    return got == sent;
  });
  EXPECT_TRUE(link.say("again"));
}

TEST_F(LoopTest, ALinkEndsWithItsPeerOrWithWhatIsNoMessage) {
  for (const bool says_something : {true, false}) {
    auto [ours, theirs] = pair(SOCK_SEQPACKET);
    int ended = 0;
    const Link link(
        *poll_, std::move(ours), [](std::string_view text, const std::vector<Fd>&) { return text != "wrong"; }, [&] { ++ended; });
    say(theirs, "right");
    if (says_something) say(theirs, "wrong");
    else theirs.reset();
    until([&] { return ended > 0; });
    EXPECT_EQ(ended, 1);
    EXPECT_FALSE(link.open());
  }
}

TEST_F(LoopTest, AMemoryFileIsReadAsAWholeWhereverItsOffsetIs) {
  const Fd file(::memfd_create("list", MFD_CLOEXEC));
  say(file, "0123456789");
  EXPECT_EQ(bytes_of(file.get(), 10), "0123456789");
  EXPECT_EQ(bytes_of(file.get(), 9), std::nullopt);
  EXPECT_EQ(bytes_of(-1, 9), std::nullopt);
}

}  // namespace
}  // namespace caisson::egress
