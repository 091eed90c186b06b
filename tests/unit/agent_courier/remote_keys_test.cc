#include "agent/auth/remote_keys.h"

#include <gtest/gtest.h>

namespace caisson::auth {
namespace {

using std::chrono::seconds;

// Public keys of RFC 8037 (A.2) and of the same curve's base point.
constexpr const char* kSet =
    R"({"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})";
constexpr const char* kOther =
    R"({"keys":[{"kty":"OKP","crv":"Ed25519","kid":"b","x":"WGZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmY"}]})";

struct Asked {
  int times = 0;
  RemoteKeys keys{{.ask = [this] { ++times; }, .period = seconds(300), .stale = seconds(1000)}};
  RemoteKeys::Clock::time_point now{seconds(100'000)};

  bool refresh(seconds later = seconds(0)) { return keys.refresh(now += later); }
  bool take(Result<std::string> set) { return keys.take(std::move(set), now); }
  bool expect_new(seconds later) { return keys.expect_new(now += later); }
};

TEST(RemoteKeys, AskOnceUntilTheAnswerAndAgainAfterThePeriod) {
  Asked a;
  EXPECT_FALSE(a.refresh());
  EXPECT_FALSE(a.refresh(seconds(1)));
  EXPECT_EQ(a.times, 1);
  EXPECT_TRUE(a.take(kSet));
  EXPECT_FALSE(a.refresh(seconds(299)));
  EXPECT_EQ(a.times, 1);
  EXPECT_FALSE(a.refresh(seconds(1)));
  EXPECT_EQ(a.times, 2);
}

TEST(RemoteKeys, TheSameSetChangesNothing) {
  Asked a;
  EXPECT_TRUE(a.take(kSet));
  EXPECT_FALSE(a.take(kSet));
  EXPECT_TRUE(a.take(kOther));
  EXPECT_EQ(a.keys.keys().at(0).kid, "b");
}

TEST(RemoteKeys, WhatIsNoSetLeavesTheLastOneForAStatedTime) {
  Asked a;
  EXPECT_TRUE(a.take(kSet));
  a.now += seconds(999);
  EXPECT_FALSE(a.take("{}"));
  EXPECT_FALSE(a.take(fail(Code::io, "away")));
  EXPECT_FALSE(a.refresh());
  EXPECT_EQ(a.keys.keys().size(), 1U);
  EXPECT_TRUE(a.refresh(seconds(1)));
  EXPECT_TRUE(a.keys.keys().empty());
  EXPECT_TRUE(a.take(kSet)) << "it counts again once it was fetched";
}

TEST(RemoteKeys, AFailureIsFollowedByAnotherAttemptSoon) {
  Asked a;
  EXPECT_FALSE(a.refresh());
  EXPECT_FALSE(a.take(fail(Code::io, "away")));
  EXPECT_FALSE(a.refresh(seconds(9)));
  EXPECT_EQ(a.times, 1);
  EXPECT_FALSE(a.refresh(seconds(1)));
  EXPECT_EQ(a.times, 2);
}

TEST(RemoteKeys, AnAnswerThatNeverComesIsAskedForAgain) {
  Asked a;
  EXPECT_FALSE(a.refresh());
  EXPECT_FALSE(a.refresh(seconds(89)));
  EXPECT_EQ(a.times, 1);
  EXPECT_FALSE(a.refresh(seconds(1)));
  EXPECT_EQ(a.times, 2);
}

TEST(RemoteKeys, UnknownKeysAskAtMostOnceInTenSeconds) {
  Asked a;
  EXPECT_TRUE(a.expect_new(seconds(0)));
  EXPECT_TRUE(a.expect_new(seconds(2))) << "the answer may still come";
  EXPECT_FALSE(a.expect_new(seconds(1))) << "it is late, and is not waited for";
  EXPECT_TRUE(a.take(kSet));
  EXPECT_FALSE(a.expect_new(seconds(6)));
  EXPECT_EQ(a.times, 1);
  EXPECT_TRUE(a.expect_new(seconds(1)));
  EXPECT_EQ(a.times, 2);
}

TEST(RemoteKeys, WithoutAnAddressNothingIsAsked) {
  RemoteKeys keys{RemoteSettings()};
  EXPECT_FALSE(keys.refresh({}));
  EXPECT_FALSE(keys.expect_new({}));
}

}  // namespace
}  // namespace caisson::auth
