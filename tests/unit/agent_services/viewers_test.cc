#include "agent/services/shell/viewers.h"

#include <gtest/gtest.h>

namespace caisson::services {
namespace {

constexpr std::uint64_t kWindow = Viewers::kWindowBytes;
constexpr auto kPatience = Viewers::kPatience;
const Viewers::Clock::time_point kNow{};

TEST(Viewers, AProgramNobodyWatchesGoesOn) {
  Viewers viewers;
  EXPECT_FALSE(viewers.waits_until(1'000'000, kNow));
}

TEST(Viewers, AProgramWaitsForTheOnlyViewerWhoIsAWindowBehind) {
  Viewers viewers;
  const auto viewer = viewers.join(0, true);
  EXPECT_FALSE(viewers.waits_until(kWindow - 1, kNow));
  EXPECT_EQ(viewers.waits_until(kWindow, kNow), kNow + kPatience);
  viewer->sent = kWindow;
  viewer->acknowledge(1);
  EXPECT_FALSE(viewers.waits_until(kWindow, kNow));
}

TEST(Viewers, AProgramGoesOnAtTheFastestViewersPace) {
  Viewers viewers;
  const auto slow = viewers.join(0, true), fast = viewers.join(0, true);
  fast->sent = kWindow;
  fast->acknowledge(kWindow);
  EXPECT_FALSE(viewers.waits_until(kWindow, kNow));
}

TEST(Viewers, AViewerThatOnlyReadsIsNotWaitedFor) {
  Viewers viewers;
  const auto viewer = viewers.join(0, false);
  EXPECT_FALSE(viewers.waits_until(kWindow * 2, kNow));
  EXPECT_EQ(viewers.present(), 1u);
}

TEST(Viewers, PatienceEnds) {
  Viewers viewers;
  const auto viewer = viewers.join(0, true);
  EXPECT_TRUE(viewers.waits_until(kWindow, kNow));
  EXPECT_FALSE(viewers.waits_until(kWindow, kNow + kPatience));
}

TEST(Viewers, AnAcknowledgementBringsPatienceBack) {
  Viewers viewers;
  const auto viewer = viewers.join(0, true);
  EXPECT_TRUE(viewers.waits_until(kWindow, kNow));
  viewer->sent = kWindow;
  viewer->acknowledge(10);
  EXPECT_EQ(viewers.waits_until(kWindow + 10, kNow + kPatience), kNow + 2 * kPatience);
}

TEST(Viewers, NobodyAcknowledgesWhatWasNotSent) {
  Viewers viewers;
  const auto viewer = viewers.join(0, true);
  viewer->sent = 5;
  viewer->acknowledge(1'000'000);
  EXPECT_EQ(viewer->acknowledged, 5u);
  viewer->acknowledge(2);
  EXPECT_EQ(viewer->acknowledged, 5u);
}

TEST(Viewers, ANewWindowBeginsAfterLostBytes) {
  Viewers viewers;
  const auto viewer = viewers.join(0, true);
  viewer->sent = kWindow;
  EXPECT_EQ(viewer->allowance(), 0u);
  viewer->skip_to(kWindow + 1'000'000);
  EXPECT_EQ(viewer->allowance(), kWindow);
  viewer->acknowledge(kWindow);  // of a byte before the gap, on its way meanwhile
  EXPECT_EQ(viewer->acknowledged, kWindow + 1'000'000);
}

TEST(Viewers, AProgramWaitsForTheLastViewerThatWasCutButNotForOneThatLeft) {
  for (const bool cut : {true, false}) {
    Viewers viewers;
    const auto viewer = viewers.join(0, true);
    viewers.leave(viewer, cut, kNow);
    EXPECT_EQ(viewers.present(), 0u);
    EXPECT_EQ(viewers.waits_until(kWindow, kNow).has_value(), cut);
    EXPECT_FALSE(viewers.waits_until(kWindow, kNow + kPatience));
  }
}

TEST(Viewers, TheOneThatComesBackTakesThePlace) {
  Viewers viewers;
  viewers.leave(viewers.join(0, true), true, kNow);
  const auto back = viewers.join(kWindow, true);
  EXPECT_FALSE(viewers.waits_until(kWindow, kNow));
  EXPECT_EQ(viewers.present(), 1u);
}

}  // namespace
}  // namespace caisson::services
