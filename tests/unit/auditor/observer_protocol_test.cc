// What the observer tells the auditor.
#include "launcher/common/watching/observer_protocol.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "launcher/auditor/watch.h"
#include "launcher/common/tables/path_calls.h"

namespace caisson::auditor {
namespace {

std::string message(const std::vector<std::optional<std::string>>& texts, int nr = SYS_openat, std::uint64_t flags = 0) {
  Told head{};
  head.type = Told::Type::call;
  head.key = 7;
  head.call.data.nr = nr;
  head.call.data.args[2] = flags;
  std::string rest;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto text = i < texts.size() ? texts[i] : std::optional<std::string>("");
    head.sizes[i] = text ? static_cast<std::uint32_t>(text->size()) : Told::kUnread;
    rest += text.value_or("");
  }
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + rest;
}

TEST(Told, IsReadAsItWasWritten) {
  const std::string sent = message({"a/b", "/home", std::nullopt, ""});
  const auto told = parse_told(sent);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->head.key, 7U);
  EXPECT_EQ(told->texts[0], "a/b");
  EXPECT_EQ(told->texts[1], "/home");
  EXPECT_FALSE(told->texts[2]);
  EXPECT_EQ(told->texts[3], "");
}

TEST(Told, AnythingElseIsNotAMessage) {
  const std::string good = message({"/x"});
  EXPECT_FALSE(parse_told(""));
  EXPECT_FALSE(parse_told(good.substr(0, sizeof(Told) - 1)));
  EXPECT_FALSE(parse_told(good.substr(0, good.size() - 1))) << "shorter than its sizes say";
  EXPECT_FALSE(parse_told(good + "x")) << "longer";
  EXPECT_FALSE(parse_told(message({std::string(kMaxPath + 1, 'x')})));
  std::string other = good;
  other[0] = 9;
  EXPECT_FALSE(parse_told(other));
}

TEST(Told, RefusedNumbersAreThoseOfTheLines) {
  EXPECT_EQ(refused_numbers("\n41 socket seccomp/x\n165 mount seccomp/refused\n"), (std::vector<int>{41, 165}));
  EXPECT_TRUE(refused_numbers("\n\nx\n").empty());
}

struct Heard {
  std::vector<std::pair<Type, std::string>> records;
  Sink sink{[] { return true; },
            [this](Type type, const std::string&, std::string text) { records.emplace_back(type, std::move(text)); }};
  TokenBucket all{kAllBurst, kAllPerSecond};
  Watch watch{"s-1", {}, Rules::parse(std::string_view("\n82 rename seccomp/x: refused here\n\0x\0/usr\0w\0/tmp\0", 51))};
  std::uint32_t tell(const std::string& text) { return watch.told(*parse_told(text), 1'000'000, -1, all, sink); }
};

TEST(Watch, APathOutsideIsAnAdvisoryRecord) {
  Heard heard;
  heard.tell(message({"../etc/shadow", "/usr"}));
  ASSERT_EQ(heard.records.size(), 1U);
  EXPECT_EQ(heard.records[0].first, Type::path);
  const std::string& text = heard.records[0].second;
  EXPECT_TRUE(text.contains(R"("advisory":true,"operation":"open","wants":"look")")) << text;
  EXPECT_TRUE(text.contains(R"("expected_errno":"ENOENT")") && text.contains(R"("path":"/etc/shadow","given":"../etc/shadow")"))
      << text;
}

TEST(Watch, WhatIsGrantedOrNotNamedIsNoRecord) {
  Heard heard;
  heard.tell(message({"bin/env", "/usr"}));
  heard.tell(message({"", ""}, SYS_newfstatat));
  EXPECT_TRUE(heard.records.empty());
}

TEST(Watch, BothPathsOfACallAreLookedAt) {
  Heard heard;
  heard.tell(message({"/usr/a", "", "/srv/b", ""}, SYS_renameat2));
  ASSERT_EQ(heard.records.size(), 2U);
  EXPECT_TRUE(heard.records[0].second.contains("EROFS") && heard.records[1].second.contains("ENOENT"));
}

TEST(Watch, ARefusedCallIsADenialWhateverItNames) {
  Heard heard;
  heard.tell(message({"/usr/a", "", "/srv/b", ""}, SYS_rename));
  ASSERT_EQ(heard.records.size(), 1U);
  EXPECT_EQ(heard.records[0].first, Type::denial);
}

TEST(Watch, NumbersAddUp) {
  Heard heard;
  for (int i = 0; i < 2'000; ++i) heard.tell(message({"/srv/x"}));
  heard.tell(message({std::nullopt}));
  heard.watch.end(2'000'000, heard.sink);
  const auto paths = std::ranges::count_if(heard.records, [](const auto& r) { return r.first == Type::path; });
  EXPECT_EQ(paths, kPathBurst);
  EXPECT_TRUE(heard.records.back().second.contains(R"("paths":{"recorded":500,"dropped":1500,"unseen":1})"))
      << heard.records.back().second;
}

TEST(Watch, TooManyToBeLookedAtAreLeftToTheObserver) {
  Heard heard;
  std::uint32_t rest = 0;
  for (std::uint64_t i = 0; i <= kMostPathsPerSecond; ++i) rest = heard.tell(message({"/usr/x"}));
  EXPECT_EQ(rest, Watch::kRestMs);
}

TEST(PathCalls, EachOfItsArgumentsIsOne) {
  for (const PathCall& call : kPathCalls) {
    EXPECT_TRUE(call.path >= 0 && call.path < 6 && call.dir < 6 && call.second_path < 6) << call.operation;
    EXPECT_EQ(call.second == Want::nothing, call.second_path < 0) << call.operation;
    EXPECT_EQ(observed_call(call.nr), call.observed ? &call : nullptr) << "one row a call: " << call.name;
  }
}

}  // namespace
}  // namespace caisson::auditor
