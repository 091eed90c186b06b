// The mapping to OCSF, and what logs add up to.
#include "launcher/cli/audit/ocsf.h"

#include <gtest/gtest.h>

#include "launcher/cli/audit/stats.h"
#include "launcher/common/audit/log.h"

namespace caisson::audit {
namespace {

json::Value record(std::string_view event, json::Value fields = json::Value::object()) {
  fields["seq"] = 7, fields["time"] = "2026-01-31T12:00:00.123456Z", fields["mono_us"] = 5, fields["event"] = event;
  fields["prev"] = "aa", fields["hash"] = "bb";
  return fields;
}

TEST(Ocsf, EveryEventHasAClassACategoryAndATypeThatFit) {
  for (const Event e : {Event::boot, Event::agent_violation, Event::session_request, Event::session_end, Event::exec_start,
                        Event::exec_exit, Event::limit_hit, Event::log_deleted, Event::segment_removed}) {
    const json::Value out = ocsf(record(event_name(e)), "s-1");
    const int type = out["class_uid"].get<int>();
    EXPECT_EQ(out["category_uid"], type / 1000);
    EXPECT_EQ(out["type_uid"], type * 100 + out["activity_id"].get<int>());
    EXPECT_EQ(out["time"], 1769860800123);
    EXPECT_EQ(out["metadata"]["uid"], "bb");
    EXPECT_EQ(out["metadata"]["sequence"], 7);
    EXPECT_EQ(out["activity_name"], event_name(e));
  }
}

TEST(Ocsf, ACommandIsProcessActivity) {
  const json::Value start = ocsf(record("exec_start", {{"exec", "e-1"}, {"pid", 12}}), "s-1");
  EXPECT_EQ(start["class_uid"], 1007);
  EXPECT_EQ(start["activity_id"], 1);
  EXPECT_EQ(start["process"]["pid"], 12);
  EXPECT_EQ(start["actor"]["session"]["uid"], "s-1");
  const json::Value end = ocsf(record("exec_exit", {{"exec", "e-1"}, {"exit_code", 3}}), "s-1");
  EXPECT_EQ(end["activity_id"], 2);
  EXPECT_EQ(end["exit_code"], 3);
  EXPECT_EQ(end["status_id"], 2);
  const json::Value asked = ocsf(record("exec_request", {{"argv", {"sh", "-c", "ls /"}}, {"cwd", "/tmp"}}), "s-1");
  EXPECT_EQ(asked["process"]["cmd_line"], "sh -c ls /");
  EXPECT_EQ(asked["unmapped"]["argv"][2], "ls /");
}

TEST(Ocsf, ALimitIsAFindingAndNothingIsLost) {
  const json::Value out = ocsf(record("limit_hit", {{"limit", "memory"}, {"memory_bytes", 99}}), "s-1");
  EXPECT_EQ(out["class_uid"], 2004);
  EXPECT_EQ(out["finding_info"]["title"], "limit_hit: memory");
  EXPECT_EQ(out["unmapped"]["memory_bytes"], 99);
  EXPECT_EQ(ocsf(record("from_the_future", {{"x", 1}}), "launcher")["unmapped"]["x"], 1);
}

TEST(Stats, CountWhatALogHolds) {
  Stats a, all;
  a.add(record("exec_start"), 100);
  a.add(record("exec_exit", {{"exit_code", 3}}), 100);
  a.add(record("exec_exit", {{"signal", "SIGKILL"}, {"limit", "cpu_seconds"}}), 100);
  a.add(record("denial", {{"syscall", "mount"}, {"count", 5}}), 100);
  a.add(record("segment_removed", {{"first_seq", 10}, {"last_seq", 19}}), 100);
  a.add(record("segment_start", {{"spilled", 4}}), 100);
  a.add(record("session_end", {{"reason", "oom"}}), 100);
  all.add(a), all.add(a);
  const json::Value out = all.to_json();
  EXPECT_EQ(out["records"], 14);
  EXPECT_EQ(out["bytes"], 1400);
  EXPECT_EQ(out["execs"], 2);
  EXPECT_EQ(out["exit_codes"]["3"], 2);
  EXPECT_EQ(out["signals"]["SIGKILL"], 2);
  EXPECT_EQ(out["limits"]["cpu_seconds"], 2);
  EXPECT_EQ(out["denials"]["mount"], 10);
  EXPECT_EQ(out["removed"], 20);
  EXPECT_EQ(out["spilled"], 8);
  EXPECT_EQ(out["ends"]["oom"], 2);
}

TEST(Stats, AreBounded) {
  Stats stats;
  for (int i = 0; i < 5000; ++i) stats.add(record("denial", {{"syscall", std::to_string(i)}}), 1);
  EXPECT_LE(stats.to_json()["denials"].size(), 1001U);
}

}  // namespace
}  // namespace caisson::audit
