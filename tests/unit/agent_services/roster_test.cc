#include "agent/services/common/roster.h"

#include <gtest/gtest.h>

namespace caisson::services {
namespace {

using namespace std::chrono_literals;

struct Looks {
  int count = 0;
  bool over = false;  // as the last look saw it
};

task<void> note(Looks* looks, std::shared_ptr<const Life> life) {
  ++looks->count;
  looks->over = life->over;
  co_return Status{};
}

task<void> note_slowly(Looks* looks, std::shared_ptr<const Life> life) {
  ++looks->count;
  co_await sleep_for(10s);
  looks->over = life->over;
  co_return Status{};
}

TEST(Roster, ARowIsLookedAtAgainAndAgain) {
  asio::io_context io{1};
  Looks looks;
  Roster roster(io.get_executor());
  roster.look_after("test", every(1ms), [&](auto life) { return note(&looks, std::move(life)); });
  while (looks.count < 3) io.run_one();
  EXPECT_FALSE(looks.over);
}

TEST(Roster, ASlowRowDelaysNoOther) {
  asio::io_context io{1};
  Looks slow, quick;
  Roster roster(io.get_executor());
  roster.look_after("slow", every(1ms), [&](auto life) { return note_slowly(&slow, std::move(life)); });
  roster.look_after("quick", every(1ms), [&](auto life) { return note(&quick, std::move(life)); });
  while (slow.count < 1 || quick.count < 3) io.run_one();
  EXPECT_EQ(slow.count, 1);
}

TEST(Roster, WakeAsksForTheTimeAgain) {
  asio::io_context io{1};
  Looks looks;
  bridge::Clock::time_point next = bridge::Clock::now() + 1h;
  Roster roster(io.get_executor());
  roster.look_after(
      "test", [&] { return next; },
      [&](auto life) {
        next = bridge::Clock::now() + 1h;
        return note(&looks, std::move(life));
      });
  io.poll();
  EXPECT_EQ(looks.count, 0);
  next = bridge::Clock::now();
  roster.wake();
  while (looks.count < 1) io.run_one();
}

TEST(Roster, NothingBeginsAfterItsEnd) {
  asio::io_context io{1};
  Looks looks;
  {
    Roster roster(io.get_executor());
    roster.look_after("test", every(0ms), [&](auto life) { return note(&looks, std::move(life)); });
  }
  io.run();
  EXPECT_EQ(looks.count, 0);
}

}  // namespace
}  // namespace caisson::services
