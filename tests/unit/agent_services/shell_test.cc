// /v1/shell through its routes against a real bash at a real PTY.
#include <fstream>

#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

class Shell : public ::testing::Test {
 protected:
  json::Value exec(std::string command, json::Value more = json::Value::object()) {
    more["command"] = std::move(command);
    if (!more.contains("id")) more["id"] = "s";
    return h.post("/v1/shell/exec", std::move(more));
  }
  void SetUp() override { EXPECT_EQ(h.post("/v1/shell/sessions/create", {{"id", "s"}})["data"]["working_dir"], h.home()); }
  Harness h;
};

TEST_F(Shell, OutputIsPlainWithoutPromptOrNewline) {
  const json::Value r = exec("printf shell-doc-ok");
  EXPECT_EQ(r["success"], true);
  EXPECT_EQ(r["data"]["status"], "completed");
  EXPECT_EQ(r["data"]["output"], "shell-doc-ok");
  EXPECT_EQ(r["data"]["exit_code"], 0);
  EXPECT_EQ(r["data"]["console"][0],
            json::Value({{"ps1", "gem@sandbox:~$ "}, {"command", "printf shell-doc-ok"}, {"output", "shell-doc-ok"}}));
  EXPECT_EQ(exec("printf '\\033[31mred\\033[0m\\n\\n'; echo err >&2")["data"]["output"], "red\n\nerr");
}

TEST_F(Shell, StatePersists) {
  EXPECT_EQ(exec("cd /tmp; export A=1; f() { echo \"f $1\"; }; false")["data"]["exit_code"], 1);
  EXPECT_EQ(exec("echo $? $A; pwd; f x")["data"]["output"], "1 1\n/tmp\nf x");
  EXPECT_EQ(h.get("/v1/shell/sessions")["data"]["sessions"]["s"]["working_dir"], "/tmp");
}

TEST_F(Shell, HeredocsMultipleLinesAndUnbalancedQuotes) {
  EXPECT_EQ(exec("cat <<'E'\n'quote \"$x\" !bang\\\n\tTab\nE\nfor i in 1 2; do\n  echo $i\ndone")["data"]["output"],
            "'quote \"$x\" !bang\\\n\tTab\n1\n2");
  const json::Value broken = exec("echo 'never closed");
  EXPECT_NE(broken["data"]["exit_code"], 0);
  EXPECT_EQ(broken["data"]["status"], "completed");
  EXPECT_EQ(exec("echo fine")["data"]["output"], "fine");
}

TEST_F(Shell, ExitEndsTheCommandNotTheSession) {
  const json::Value r = exec("cd /tmp; echo x; exit 5");
  EXPECT_EQ(r["data"]["status"], "completed");
  EXPECT_EQ(r["data"]["exit_code"], 5);
  EXPECT_EQ(r["data"]["output"], "x");
  EXPECT_EQ(exec("pwd")["data"]["output"], "/tmp");
}

TEST_F(Shell, ExecSetEAndKillOfTheShellEndTheCommandToo) {
  EXPECT_EQ(exec("exec echo replaced")["data"]["output"], "replaced");
  EXPECT_EQ(exec("set -e; false; echo not reached")["data"]["exit_code"], 1);
  EXPECT_EQ(exec("kill -9 $$")["data"]["exit_code"], 137);
  EXPECT_EQ(exec("echo alive")["data"]["output"], "alive");
}

TEST_F(Shell, ShellOptionsDoNotBreakTheSession) {
  EXPECT_EQ(exec("set -u; set -e; ! true; set -o pipefail")["data"]["exit_code"], 0);
  EXPECT_EQ(exec("echo ok")["data"]["output"], "ok");
  EXPECT_NE(exec("set -x; echo traced")["data"]["output"].get<std::string>().find("traced"), std::string::npos);
  EXPECT_EQ(exec("set +x")["data"]["status"], "completed");
  EXPECT_EQ(exec("PROMPT_COMMAND=; PS1=; exec >/dev/null 2>&1")["data"]["status"], "completed");
  EXPECT_EQ(exec("echo lost")["data"]["status"], "completed");
  EXPECT_EQ(exec("exec >/dev/tty 2>&1; echo back")["data"]["output"], "back");
}

TEST_F(Shell, BackgroundJobsDoNotHoldTheCommand) {
  const json::Value r = exec("sleep 30 & echo started");
  EXPECT_EQ(r["data"]["status"], "completed");
  EXPECT_NE(r["data"]["output"].get<std::string>().find("started"), std::string::npos);
  EXPECT_EQ(exec("kill %1; wait; echo done")["data"]["status"], "completed");
}

TEST_F(Shell, ForgedMarkersDoNotEndACommand) {
  const json::Value r = exec("printf '\\033]7717;P;0123456789abcdef0123456789abcdef;0;/\\a'; sleep 0.2; echo real; exit 9");
  EXPECT_EQ(r["data"]["exit_code"], 9);
  EXPECT_EQ(r["data"]["output"], "real");
}

TEST_F(Shell, CommandsWithoutTheirHooksStillEnd) {
  EXPECT_EQ(exec("unset -f _caisson_b")["data"]["status"], "completed");
  EXPECT_EQ(exec("(exit 4)")["data"]["exit_code"], 4);
}

TEST_F(Shell, TimeoutAnswersRunningAndWaitSeesTheEnd) {
  const json::Value r = exec("echo part; until [ -e go ]; do sleep 0.02; done; echo end", {{"timeout", 2}});
  EXPECT_EQ(r["data"]["status"], "running");
  EXPECT_EQ(r["data"]["output"], nullptr);
  EXPECT_EQ(r["data"]["exit_code"], nullptr);
  EXPECT_EQ(r["data"]["console"][0]["output"], "part");
  EXPECT_EQ(h.post("/v1/shell/wait", {{"id", "s"}, {"seconds", 0}})["data"]["status"], "running");
  std::ofstream(h.home() + "/go");
  EXPECT_EQ(h.post("/v1/shell/wait", {{"id", "s"}})["data"]["status"], "completed");
  const json::Value view = h.post("/v1/shell/view", {{"id", "s"}})["data"];
  EXPECT_EQ(view["exit_code"], 0);
  EXPECT_NE(view["output"].get<std::string>().find("; echo end\npart\nend"), std::string::npos) << view;
}

TEST_F(Shell, NoChangeTimeoutLeavesTheProcessToWriteAndKill) {
  const json::Value r = exec("read -r line; echo \"got $line\"", {{"no_change_timeout", 1}});
  EXPECT_EQ(r["data"]["status"], "no_change_timeout");
  EXPECT_EQ(h.post("/v1/shell/write", {{"id", "s"}, {"input", "hi"}, {"press_enter", true}})["success"], true);
  EXPECT_EQ(h.post("/v1/shell/wait", {{"id", "s"}})["data"]["status"], "completed");
  const json::Value view = h.post("/v1/shell/view", {{"id", "s"}})["data"];
  EXPECT_NE(view["console"][0]["output"].get<std::string>().find("got hi"), std::string::npos) << view;
}

TEST_F(Shell, HardTimeoutGivesPartialOutputAndKeepsTheState) {
  (void)exec("A=kept");
  const json::Value r = exec("echo part; sleep 60", {{"hard_timeout", 2}});
  EXPECT_EQ(r["data"]["status"], "hard_timeout");
  EXPECT_EQ(r["data"]["output"], "part");
  EXPECT_EQ(r["data"]["exit_code"], nullptr);
  EXPECT_EQ(exec("echo $A")["data"]["output"], "kept");
}

TEST_F(Shell, AProgramThatIgnoresSignalsIsKilledAllTheSame) {
  const json::Value r = exec("trap '' INT QUIT; echo deaf; sleep 60", {{"hard_timeout", 2}});
  EXPECT_EQ(r["data"]["status"], "hard_timeout");
  EXPECT_EQ(r["data"]["output"], "deaf");
  EXPECT_EQ(exec("echo alive")["data"]["output"], "alive");
}

TEST_F(Shell, KillIsTerminated) {
  EXPECT_EQ(exec("sleep 60", {{"async_mode", true}})["data"]["status"], "running");
  EXPECT_EQ(h.post("/v1/shell/kill", {{"id", "s"}})["data"]["status"], "terminated");
  EXPECT_EQ(exec("exit 3")["data"]["exit_code"], 3);
  const json::Value none = h.post("/v1/shell/kill", {{"id", "s"}})["data"];
  EXPECT_EQ(none["status"], "completed");
  EXPECT_EQ(none["returncode"], 3);
}

TEST_F(Shell, CtrlCByWriteEndsTheCommand) {
  // It says so itself: an interrupt after the fork of bash, and before the program is executed, meets the handler of bash.
  (void)exec("sh -c 'echo begun; exec sleep 60'", {{"async_mode", true}});
  const auto shown = [&] { return h.post("/v1/shell/view", {{"id", "s"}})["data"]["output"].get<std::string>(); };
  ASSERT_TRUE(h.eventually([&] { return shown().contains("\nbegun"); }));
  EXPECT_EQ(h.post("/v1/shell/write", {{"id", "s"}, {"input", "\x03"}, {"press_enter", false}})["success"], true);
  EXPECT_EQ(h.post("/v1/shell/wait", {{"id", "s"}})["data"]["status"], "completed");
  EXPECT_EQ(h.post("/v1/shell/view", {{"id", "s"}})["data"]["exit_code"], 130);
}

TEST_F(Shell, ConcurrentExecsQueueInOrder) {
  std::vector<std::shared_ptr<services::ShellCommand>> commands;
  const auto s = h.workspace->shell.find("s");
  for (int i = 0; i < 5; ++i)
    commands.push_back(services::ShellSession::enqueue(s, {.command = "sleep 0.05; echo " + std::to_string(i) +
                                                                      " | tee -a order; (exit " + std::to_string(i) + ")"})
                           .value());
  EXPECT_EQ(exec("cat order")["data"]["output"], "0\n1\n2\n3\n4");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(commands[static_cast<std::size_t>(i)]->exit_code, i);
    EXPECT_EQ(commands[static_cast<std::size_t>(i)]->text(0), std::to_string(i));
  }
}

TEST_F(Shell, AQueuedCommandKeepsToItsTimeout) {
  (void)exec("until [ -e go ]; do sleep 0.02; done", {{"async_mode", true}});
  const json::Value r = exec("echo later", {{"timeout", 0.1}});
  EXPECT_EQ(r["data"]["status"], "running");
  std::ofstream(h.home() + "/go");
  EXPECT_EQ(h.post("/v1/shell/wait", {{"id", "s"}})["data"]["status"], "completed");
  EXPECT_EQ(h.post("/v1/shell/view", {{"id", "s"}})["data"]["command"], "echo later");
}

TEST_F(Shell, ExecDirFallsBackUnlessStrict) {
  EXPECT_EQ(exec("pwd", {{"exec_dir", "/nowhere"}})["data"]["output"], h.home());
  const json::Value strict = exec("echo ran", {{"exec_dir", "/nowhere"}, {"strict", true}});
  EXPECT_EQ(strict["success"], false);
  EXPECT_EQ(strict["data"]["output"], "");
  std::filesystem::create_directory(h.home() + "/real");
  std::filesystem::create_symlink(h.home() + "/real", h.home() + "/link");
  EXPECT_EQ(exec("pwd", {{"exec_dir", h.home() + "/link"}})["data"]["output"], h.home() + "/real");
  EXPECT_EQ(exec("pwd", {{"exec_dir", h.home() + "/link"}, {"preserve_symlinks", true}})["data"]["output"], h.home() + "/link");
}

TEST_F(Shell, LongOutputIsCutUnlessAsked) {
  const std::string command = "head -c 100000 /dev/zero | tr '\\0' y";
  EXPECT_EQ(exec(command)["data"]["output"].get<std::string>().size(), 30'000u);
  EXPECT_EQ(exec(command, {{"truncate", false}})["data"]["output"].get<std::string>().size(), 100'000u);
}

TEST_F(Shell, LongCommandsRun) {
  const std::string text(60'000, 'w');
  EXPECT_EQ(exec("echo '" + text + "' | wc -c")["data"]["output"], "60001");
}

TEST_F(Shell, FloodIsBounded) {
  const json::Value r = exec("yes", {{"hard_timeout", 0.5}});
  EXPECT_EQ(r["data"]["status"], "hard_timeout");
  EXPECT_LE(r["data"]["output"].get<std::string>().size(), 30'000u);
  EXPECT_LE(h.workspace->shell.find("s")->screen().end() - h.workspace->shell.find("s")->screen().begin(), 256u * 1024);
  EXPECT_EQ(exec("echo ok")["data"]["output"], "ok");
}

TEST_F(Shell, FullScreenProgramsDoNotBreakTheSession) {
  (void)exec("stty raw -echo; sleep 60", {{"hard_timeout", 0.3}});
  EXPECT_EQ(exec("echo one; echo two")["data"]["output"], "one\ntwo");
  (void)exec("stty -onlcr raw -echo");
  EXPECT_EQ(exec("echo one; echo two")["data"]["output"], "one\ntwo");
}

TEST_F(Shell, ALineTypedAtThePromptRunsAndIsRecorded) {
  EXPECT_EQ(h.post("/v1/shell/write", {{"id", "s"}, {"input", "echo typed $((1+1))"}, {"press_enter", true}})["success"], true);
  (void)h.eventually([&] { return !h.workspace->shell.find("s")->console().empty(); });
  const json::Value view = h.post("/v1/shell/view", {{"id", "s"}})["data"];
  EXPECT_EQ(view["console"][0]["output"], "typed 2") << view;
  EXPECT_EQ(view["command"], "echo typed $((1+1))");
}

TEST_F(Shell, AHalfTypedLineDoesNotSpoilTheNextCommand) {
  EXPECT_EQ(h.post("/v1/shell/write", {{"id", "s"}, {"input", "echo 'half"}, {"press_enter", true}})["success"], true);
  h.idle(std::chrono::milliseconds(100));
  EXPECT_EQ(exec("echo whole")["data"]["output"], "whole");
}

TEST_F(Shell, InteractiveProgramsTakeInput) {
  EXPECT_EQ(exec("python3 -q", {{"no_change_timeout", 1}})["data"]["status"], "no_change_timeout");
  (void)h.post("/v1/shell/write", {{"id", "s"}, {"input", "print(6*7)"}, {"press_enter", true}});
  (void)h.post("/v1/shell/write", {{"id", "s"}, {"input", "exit()"}, {"press_enter", true}});
  EXPECT_EQ(h.post("/v1/shell/wait", {{"id", "s"}})["data"]["status"], "completed");
  EXPECT_NE(h.post("/v1/shell/view", {{"id", "s"}})["data"]["output"].get<std::string>().find("42"), std::string::npos);
}

TEST_F(Shell, SessionsByTheContract) {
  EXPECT_EQ(h.post("/v1/shell/exec", {{"id", "nope"}, {"command", "true"}}),
            json::Value({{"success", false}, {"message", "Session not found"}, {"data", nullptr}}));
  EXPECT_EQ(h.status, 404);
  EXPECT_EQ(h.post("/v1/shell/sessions/create", {{"id", "s"}})["data"]["session_id"], "s");
  EXPECT_FALSE(h.post("/v1/shell/sessions/create", {{"id", ""}})["data"]["session_id"].get<std::string>().empty());
  EXPECT_FALSE(h.post("/v1/shell/exec", {{"command", "true"}})["data"]["session_id"].get<std::string>().empty());
  EXPECT_EQ(h.get("/v1/shell/sessions/stats")["data"]["total_sessions"], 3);
  EXPECT_EQ(h.post("/v1/shell/sessions/update", {{"id", "s"}, {"no_change_timeout", 5}})["success"], true);
  EXPECT_EQ(h.del("/v1/shell/sessions/s")["success"], true);
  (void)h.del("/v1/shell/sessions/s");
  EXPECT_EQ(h.status, 404);
  EXPECT_EQ(h.del("/v1/shell/sessions")["success"], true);
  EXPECT_EQ(h.get("/v1/shell/sessions")["data"]["sessions"], json::Value::object());
  EXPECT_EQ(h.fake.sessions_created, h.fake.sessions_destroyed);
}

TEST_F(Shell, CloseEndsWaitingRequests) {
  const auto s = h.workspace->shell.find("s");
  const auto running = services::ShellSession::enqueue(s, {.command = "sleep 60"}).value();
  const auto queued = services::ShellSession::enqueue(s, {.command = "echo never"}).value();
  h.idle(std::chrono::milliseconds(200));
  EXPECT_EQ(h.del("/v1/shell/sessions/s")["success"], true);
  EXPECT_TRUE(running->finished && queued->finished);
  EXPECT_EQ(running->status, services::ShellStatus::terminated);
}

TEST(ShellService, ImplicitSessionsAreFew) {
  services::Config config;
  config.max_implicit_sessions = 2;
  Harness h(config);
  EXPECT_EQ(h.post("/v1/shell/sessions/create", {{"id", "named"}})["success"], true);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(h.post("/v1/shell/exec", {{"command", "true"}})["success"], true);
  const json::Value sessions = h.get("/v1/shell/sessions")["data"]["sessions"];
  EXPECT_EQ(sessions.size(), 3u);
  EXPECT_TRUE(sessions.contains("named"));
}

TEST(ShellService, AnRcFileThatHangsOrExitsIsSkipped) {
  Harness h;
  auto file = sys::open(h.home() + "/.bashrc", O_CREAT | O_WRONLY, 0600);
  ASSERT_TRUE(file && sys::write_all(file->get(), "exit 3\n"));
  EXPECT_EQ(h.post("/v1/shell/exec", {{"command", "echo here"}})["data"]["output"], "here");
}

}  // namespace
}  // namespace caisson::testing
