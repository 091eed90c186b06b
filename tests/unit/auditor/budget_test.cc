// How much of a flood is on record: arithmetic on a clock that the test turns.
#include "launcher/auditor/budget.h"

#include <gtest/gtest.h>

namespace caisson::auditor {
namespace {

constexpr std::int64_t kBegin = 1'000'000'000;

int taken(TokenBucket& bucket, int calls, std::int64_t now_us) {
  int count = 0;
  for (int i = 0; i < calls; ++i) count += bucket.take(now_us) ? 1 : 0;
  return count;
}

TEST(TokenBucket, GivesItsBurstAndNoMore) {
  TokenBucket bucket(10, 100);
  EXPECT_EQ(taken(bucket, 50, kBegin), 10);
}

TEST(TokenBucket, RefillsWithTimeUpToItsBurst) {
  TokenBucket bucket(10, 100);
  (void)taken(bucket, 10, kBegin);
  EXPECT_EQ(taken(bucket, 50, kBegin + 50'000), 5) << "100 a second for 50 ms";
  EXPECT_EQ(taken(bucket, 50, kBegin + 3'600'000'000), 10) << "an hour is not 360,000 tokens";
}

TEST(TokenBucket, LosesNoFractionHoweverOftenItIsAsked) {
  TokenBucket bucket(1, 100);
  int count = 0;
  for (std::int64_t t = 0; t < 1'000'000; t += 7) count += bucket.take(kBegin + t) ? 1 : 0;
  EXPECT_NEAR(count, 101, 1);
}

TEST(Budget, RecordsThenCountsThenCloses) {
  TokenBucket all(1'000'000, 1'000'000);
  Budget budget;
  std::uint64_t seen[3] = {};
  Verdict last = Verdict::record;
  std::uint64_t calls = 0;
  do {
    last = budget.take(kBegin, all);
    ++seen[static_cast<int>(last)];
    ++calls;
  } while (last != Verdict::close);
  EXPECT_EQ(seen[0], static_cast<std::uint64_t>(kBurst));
  EXPECT_EQ(seen[1], kMostPerSecond - kBurst);
  EXPECT_EQ(calls, kMostPerSecond + 1);
}

TEST(Budget, AModestRateIsNeverClosed) {
  TokenBucket all(kAllBurst, kAllPerSecond);
  Budget budget;
  for (std::int64_t i = 0; i < 200'000; ++i)  // 10,000 a second for 20 seconds
    ASSERT_NE(budget.take(kBegin + i * 100, all), Verdict::close) << i;
}

TEST(Budget, AllSessionsTogetherHaveALimitToo) {
  TokenBucket all(kAllBurst, kAllPerSecond);
  int recorded = 0;
  for (int session = 0; session < 10; ++session) {
    Budget budget;
    for (int i = 0; i < 1000; ++i) recorded += budget.take(kBegin, all) == Verdict::record ? 1 : 0;
  }
  EXPECT_EQ(recorded, kAllBurst);
}

}  // namespace
}  // namespace caisson::auditor
