// Time is made up: nothing sleeps.
#include "launcher/pid1/session/refusals.h"

#include <gtest/gtest.h>

namespace caisson::session {
namespace {

constexpr std::int64_t kBegin = 1'000'000'000;

TEST(Refusals, ABurstIsRecordedAndTheRestCounted) {
  Refusals refusals;
  int recorded = 0;
  for (int i = 0; i < 1000; ++i) recorded += refusals.take(kBegin) ? 1 : 0;
  EXPECT_EQ(recorded, Refusals::kBurst);
  EXPECT_EQ(refusals.take_dropped(), 1000U - Refusals::kBurst);
  EXPECT_EQ(refusals.dropped(), 0U);
}

TEST(Refusals, OneASecondIsAlwaysRecorded) {
  Refusals refusals;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(refusals.take(kBegin + i * Refusals::kPeriodUs));
}

TEST(Refusals, AFloodIsRecordedOnceASecondFromThenOn) {
  Refusals refusals;
  int recorded = 0;
  for (int i = 0; i < 100'000; ++i) recorded += refusals.take(kBegin + i * 1000) ? 1 : 0;  // 100 seconds
  EXPECT_GE(recorded, Refusals::kBurst + 98);
  EXPECT_LE(recorded, Refusals::kBurst + 100);
}

TEST(Refusals, RestDoesNotAddUpBeyondTheBurst) {
  Refusals refusals;
  EXPECT_TRUE(refusals.take(kBegin));
  int recorded = 0;
  for (int i = 0; i < 1000; ++i) recorded += refusals.take(kBegin + 100'000 * Refusals::kPeriodUs) ? 1 : 0;
  EXPECT_EQ(recorded, Refusals::kBurst);
}

}  // namespace
}  // namespace caisson::session
