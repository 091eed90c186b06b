#include "launcher/cli/audit/show.h"

#include <gtest/gtest.h>

namespace caisson::audit {
namespace {

json::Value record() {
  return {{"seq", 7},
          {"time", "2026-01-02T03:04:05.000006Z"},
          {"mono_us", 1},
          {"event", "exec_request"},
          {"argv", {"bash", "-c", "ls /"}},
          {"aa", true},
          {"cwd", "/home/gem"},
          {"prev", "x"},
          {"hash", "y"}};
}

TEST(Show, OneAlignedLineWithTheTellingFieldsFirst) {
  EXPECT_EQ(show(record(), {}),
            "2026-01-02 03:04:05.000006      7  exec_request     argv=[bash -c \"ls /\"]  cwd=/home/gem  aa=true");
}

TEST(Show, NothingInARecordReachesTheTerminalRaw) {
  json::Value bad = record();
  const std::string hostile = "\x1b[2J\n\xe2\x80\xae\xff";
  for (const char* key : {"time", "event", "cwd", "argv", "seq"}) bad[key] = hostile;
  bad[hostile] = hostile;
  for (const std::string& text : {show(bad, {}), show_broken(hostile, {})})
    for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
}

TEST(Show, ColourOnlyWhenAsked) {
  EXPECT_FALSE(show(record(), {}).contains('\x1b'));
  EXPECT_TRUE(show(record(), {.colour = true}).contains('\x1b'));
}

TEST(Show, FiltersByEventAndTime) {
  EXPECT_TRUE((Filter{}).match(record()));
  EXPECT_TRUE((Filter{.events = {"boot", "exec_request"}}).match(record()));
  EXPECT_FALSE((Filter{.events = {"boot"}}).match(record()));
  EXPECT_TRUE((Filter{.since = "2026-01-02T03"}).match(record()));
  EXPECT_FALSE((Filter{.since = "2026-01-02T04"}).match(record()));
}

TEST(Show, SinceIsATimeOrAnAge) {
  const std::int64_t now = 1'767'323'045LL * 1'000'000'000;  // 2026-01-02T03:04:05Z
  EXPECT_EQ(since_from("65s", now), "2026-01-02T03:03:00.000000Z");
  EXPECT_EQ(since_from("1d", now), "2026-01-01T03:04:05.000000Z");
  EXPECT_EQ(since_from("2026-01-02", now), "2026-01-02");
  EXPECT_EQ(since_from("2026-01-02 03:04", now), "2026-01-02T03:04");
  EXPECT_EQ(since_from("2026-01-02T03:04:05Z", now), "2026-01-02T03:04:05");
  for (const char* bad :
       {"", "x", "5", "5w", "-1h", "2026", "2026-01-02Tx", "99999999999999999999s", "2026-01-02T03:04:05.000006Zx"})
    EXPECT_EQ(since_from(bad, now), std::nullopt) << bad;
}

}  // namespace
}  // namespace caisson::audit
