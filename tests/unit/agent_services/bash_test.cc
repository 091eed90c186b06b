// /v1/bash through its routes against real processes.
#include <fstream>

#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

TEST(Bash, ExecGivesOutputExitCodeAndOffsets) {
  Harness h;
  const json::Value r = h.post("/v1/bash/exec", {{"command", "echo out; echo err >&2; exit 3"}});
  EXPECT_EQ(r["success"], true);
  const json::Value& d = r["data"];
  EXPECT_EQ(d["status"], "completed");
  EXPECT_EQ(d["stdout"], "out\n");
  EXPECT_EQ(d["stderr"], "err\n");
  EXPECT_EQ(d["exit_code"], 3);
  EXPECT_EQ(d["offset"], 4);
  EXPECT_EQ(d["stderr_offset"], 4);
}

TEST(Bash, NothingPersistsButExecDir) {
  Harness h;
  std::filesystem::create_directory(h.home() + "/sub");
  const json::Value first = h.post("/v1/bash/exec", {{"command", "cd /; export A=1"}, {"exec_dir", h.home() + "/sub"}});
  const json::Value id = first["data"]["session_id"];
  const json::Value second = h.post("/v1/bash/exec", {{"command", "echo $A; pwd"}, {"session_id", id}});
  EXPECT_EQ(second["data"]["stdout"], "\n" + h.home() + "/sub\n");
}

TEST(Bash, MissingExecDirFailsClearlyAndKeepsTheDefault) {
  Harness h;
  const json::Value id = h.post("/v1/bash/exec", {{"command", "true"}})["data"]["session_id"];
  const json::Value r = h.post("/v1/bash/exec", {{"command", "true"}, {"exec_dir", "/nowhere"}, {"session_id", id}});
  EXPECT_EQ(r["success"], false);
  EXPECT_EQ(h.status, 200);
  EXPECT_NE(r["message"].get<std::string>().find("exec_dir does not exist: /nowhere"), std::string::npos) << r;
  EXPECT_EQ(h.post("/v1/bash/exec", {{"command", "pwd"}, {"session_id", id}})["data"]["stdout"], h.home() + "\n");
}

TEST(Bash, UnknownSessionIs404InTheEnvelope) {
  Harness h;
  for (const char* path : {"exec", "output", "write", "kill", "sessions/nope/close"}) {
    json::Value body = {{"session_id", "nope"}, {"command", "true"}, {"input", ""}};
    const json::Value r = h.post(std::string("/v1/bash/") + path, body);
    EXPECT_EQ(h.status, 404) << path;
    EXPECT_EQ(r["message"], "Session not found");
  }
}

TEST(Bash, EnvIsForOneCommandAndNullUnsets) {
  Harness h;
  const json::Value r =
      h.post("/v1/bash/exec", {{"command", "echo \"$A-${USER-unset}\""}, {"env", {{"A", "x y"}, {"USER", nullptr}}}});
  EXPECT_EQ(r["data"]["stdout"], "x y-unset\n");
}

TEST(Bash, TimeoutAnswersRunningAndTheCommandGoesOn) {
  Harness h;
  const json::Value r =
      h.post("/v1/bash/exec", {{"command", "echo a; until [ -e go ]; do sleep 0.02; done; echo b"}, {"timeout", 2}});
  EXPECT_EQ(r["data"]["status"], "running");
  EXPECT_EQ(r["data"]["stdout"], "a\n");
  EXPECT_EQ(r["data"]["exit_code"], nullptr);
  std::ofstream(h.home() + "/go");
  json::Value ask = {{"session_id", r["data"]["session_id"]},
                     {"command_id", r["data"]["command_id"]},
                     {"offset", r["data"]["offset"]},
                     {"wait", true}};
  std::string all;
  for (int i = 0; i < 10; ++i) {
    const json::Value o = h.post("/v1/bash/output", ask);
    all += o["data"]["stdout"].get<std::string>();
    ask["offset"] = o["data"]["offset"];
    if (o["data"]["command"]["status"] == "completed") break;
  }
  EXPECT_EQ(all, "b\n");
}

TEST(Bash, HardTimeoutIsTimedOut) {
  Harness h;
  const json::Value r = h.post("/v1/bash/exec", {{"command", "echo part; sleep 60"}, {"hard_timeout", 2}});
  EXPECT_EQ(r["data"]["status"], "timed_out");
  EXPECT_EQ(r["data"]["stdout"], "part\n");
  EXPECT_EQ(r["data"]["exit_code"], nullptr);
}

TEST(Bash, KillGivesKilledAndOtherSignalsAreRefused) {
  Harness h;
  const json::Value id = h.post("/v1/bash/exec", {{"command", "sleep 60"}, {"async_mode", true}})["data"]["session_id"];
  EXPECT_EQ(h.post("/v1/bash/kill", {{"session_id", id}, {"signal", "SIGSTOP"}})["success"], false);
  EXPECT_EQ(h.post("/v1/bash/kill", {{"session_id", id}})["success"], true);
  const json::Value o = h.post("/v1/bash/output", {{"session_id", id}, {"wait", true}});
  EXPECT_EQ(o["data"]["command"]["status"], "killed");
  EXPECT_EQ(h.post("/v1/bash/kill", {{"session_id", id}})["success"], false) << "nothing runs any more";
}

TEST(Bash, DeathByItsOwnSignalIsCompleted) {
  Harness h;
  const json::Value r = h.post("/v1/bash/exec", {{"command", "kill -9 $$"}});
  EXPECT_EQ(r["data"]["status"], "completed");
  EXPECT_EQ(r["data"]["exit_code"], 137);
}

TEST(Bash, WriteReachesStdinAndCtrlDClosesIt) {
  Harness h;
  const json::Value id = h.post("/v1/bash/exec", {{"command", "cat; echo end"}, {"async_mode", true}})["data"]["session_id"];
  EXPECT_EQ(h.post("/v1/bash/write", {{"session_id", id}, {"input", "hello\n"}})["success"], true);
  EXPECT_EQ(h.post("/v1/bash/write", {{"session_id", id}, {"input", "\x04"}})["success"], true);
  json::Value o;
  for (int i = 0; i < 10; ++i) {
    o = h.post("/v1/bash/output", {{"session_id", id}, {"wait", true}, {"offset", 10}});
    if (o["data"]["command"]["status"] == "completed") break;
  }
  EXPECT_EQ(h.post("/v1/bash/output", {{"session_id", id}})["data"]["stdout"], "hello\nend\n");
}

TEST(Bash, BackgroundChildDoesNotHoldTheAnswer) {
  Harness h;
  const json::Value r = h.post("/v1/bash/exec", {{"command", "(until [ -e go ]; do sleep 0.02; done; echo late) & echo now"}});
  EXPECT_EQ(r["data"]["stdout"], "now\n");
  std::ofstream(h.home() + "/go");
  const json::Value ask = {{"session_id", r["data"]["session_id"]}, {"offset", r["data"]["offset"]}};
  EXPECT_TRUE(h.eventually([&] { return h.post("/v1/bash/output", ask)["data"]["stdout"] == "late\n"; }));
}

TEST(Bash, MiddleIsCutAtMaxOutputLength) {
  Harness h;
  const json::Value r =
      h.post("/v1/bash/exec", {{"command", "printf 'a%.0s' {1..500}; printf 'z%.0s' {1..500}"}, {"max_output_length", 200}});
  const auto out = r["data"]["stdout"].get<std::string>();
  EXPECT_LE(out.size(), 200u);
  EXPECT_TRUE(out.starts_with("aaaa") && out.ends_with("zzzz")) << out;
  EXPECT_NE(out.find("characters truncated"), std::string::npos);
  EXPECT_EQ(r["data"]["offset"], 1000);
}

TEST(Bash, FloodStaysWithinItsCapAndOffsetsStayRight) {
  services::Config config;
  config.stream_cap_bytes = 256 * 1024;
  Harness h(config);
  const json::Value r =
      h.post("/v1/bash/exec", {{"command", "head -c 3000000 /dev/zero | tr '\\0' x; echo END"}, {"max_output_length", 1000}});
  EXPECT_EQ(r["data"]["offset"], 3000004);
  EXPECT_TRUE(r["data"]["stdout"].get<std::string>().ends_with("xEND\n"));
  const json::Value o = h.post("/v1/bash/output", {{"session_id", r["data"]["session_id"]}});
  EXPECT_LE(o["data"]["stdout"].get<std::string>().size(), 256u * 1024);
  EXPECT_EQ(o["data"]["offset"], 3000004);
  EXPECT_NE(o["hint"].get<std::string>().find("dropped"), std::string::npos);
}

TEST(Bash, OtherSessionsAnswerDuringAFlood) {
  services::Config config;
  config.stream_cap_bytes = 256 * 1024;
  Harness h(config);
  const json::Value id = h.post("/v1/bash/exec", {{"command", "yes"}, {"async_mode", true}})["data"]["session_id"];
  for (int i = 0; i < 5; ++i) EXPECT_EQ(h.post("/v1/bash/exec", {{"command", "echo ok"}})["data"]["stdout"], "ok\n");
  EXPECT_EQ(h.post("/v1/bash/sessions/" + id.get<std::string>() + "/close", nullptr)["success"], true);
}

TEST(Bash, CommandsLargerThanAMessageRun) {
  Harness h;
  const std::string big(300'000, 'q');
  const json::Value r =
      h.post("/v1/bash/exec",
             {{"command", "cat <<'E' | wc -c\n" + big + "\nE\nread -r line; echo \"got $line\""}, {"async_mode", true}});
  const json::Value id = r["data"]["session_id"];
  EXPECT_EQ(h.post("/v1/bash/write", {{"session_id", id}, {"input", "input\n"}})["success"], true);
  json::Value o;
  for (int i = 0; i < 20; ++i) {
    o = h.post("/v1/bash/output", {{"session_id", id}, {"wait", true}, {"offset", 100}});
    if (o["data"]["command"]["status"] != "running") break;
  }
  EXPECT_EQ(h.post("/v1/bash/output", {{"session_id", id}})["data"]["stdout"], "300001\ngot input\n");
}

TEST(Bash, SnapshotIsSourcedBeforeEachCommand) {
  Harness h;
  const std::string path = h.home() + "/it's a snapshot";
  auto file = sys::open(path, O_CREAT | O_WRONLY, 0600);
  ASSERT_TRUE(file && sys::write_all(file->get(), "shopt -s expand_aliases\nalias hi='echo hello'\nX=7\n"));
  const json::Value made = h.post("/v1/bash/sessions/create", {{"session_id", "snap"}, {"snapshot_path", path}});
  EXPECT_EQ(made["data"]["status"], "ready") << made;
  const json::Value r = h.post("/v1/bash/exec", {{"session_id", "snap"}, {"command", "hi $X"}});
  EXPECT_EQ(r["data"]["stdout"], "hello 7\n");
  EXPECT_EQ(h.post("/v1/bash/sessions/create", {{"snapshot_path", "/nowhere"}})["success"], false);
}

TEST(Bash, IdleSessionsAreEvictedAndBusyOnesNever) {
  services::Config config;
  config.max_bash_sessions = 2;
  Harness h(config);
  const json::Value busy = h.post("/v1/bash/exec", {{"command", "sleep 30"}, {"async_mode", true}})["data"]["session_id"];
  const json::Value idle = h.post("/v1/bash/exec", {{"command", "true"}})["data"]["session_id"];
  EXPECT_EQ(h.post("/v1/bash/exec", {{"command", "sleep 30"}, {"async_mode", true}})["success"], true);
  (void)h.post("/v1/bash/output", {{"session_id", idle}});
  EXPECT_EQ(h.status, 404);
  (void)h.post("/v1/bash/output", {{"session_id", busy}});
  EXPECT_EQ(h.status, 200);
  const json::Value full = h.post("/v1/bash/exec", {{"command", "true"}});
  EXPECT_EQ(full["success"], false);
  EXPECT_NE(full["message"].get<std::string>().find("all 2 bash sessions"), std::string::npos);
}

TEST(Bash, CloseKillsCommandsAndForgetsTheSession) {
  Harness h;
  const auto id =
      h.post("/v1/bash/exec", {{"command", "sleep 60"}, {"async_mode", true}})["data"]["session_id"].get<std::string>();
  const auto command = h.workspace->bash.find(id)->latest();
  EXPECT_EQ(h.get("/v1/bash/sessions")["data"][0]["current_command"], "sleep 60");
  EXPECT_EQ(h.post("/v1/bash/sessions/" + id + "/close", nullptr)["success"], true);
  EXPECT_TRUE(h.eventually([&] { return command->status == services::CommandStatus::killed; }));
  EXPECT_TRUE(h.get("/v1/bash/sessions")["data"].empty());
  EXPECT_TRUE(h.eventually([&] { return h.fake.sessions_destroyed == 1; }));
}

TEST(Bash, LauncherRefusalIsAToolFailure) {
  Harness h;
  h.fake.refuse_creates = 1;
  const json::Value r = h.post("/v1/bash/exec", {{"command", "true"}});
  EXPECT_EQ(r["success"], false);
  EXPECT_EQ(h.post("/v1/bash/exec", {{"command", "true"}})["success"], true);
}

TEST(Bash, NulInACommandIsRefused) {
  Harness h;
  EXPECT_EQ(h.post("/v1/bash/exec", {{"command", std::string("a\0b", 3)}})["success"], false);
}

TEST(Bash, LauncherGoneIsReported) {
  Harness h;
  h.fake.stop();
  EXPECT_TRUE(h.eventually([&] { return h.gone.has_value(); }));
  EXPECT_EQ(h.post("/v1/bash/exec", {{"command", "true"}})["success"], false);
}

}  // namespace
}  // namespace caisson::testing
