// /v1/code, /v1/nodejs and /run_code through their routes against real interpreters, and what is read of them.
#include "agent/services/code/code_report.h"
#include "agent/services/program/toolchains.h"
#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

using services::Language;

services::Config cold() {
  services::Config config;
  config.warm_sessions = 0;
  return config;
}

json::Value python(Harness& h, const std::string& code, json::Value more = json::Value::object()) {
  more.update({{"language", "python"}, {"code", code}});
  return h.post("/v1/code/execute", more);
}

TEST(CodeReport, IsFoundWholeAndOnlyBehindItsNonce) {
  const std::string nonce(32, 'a');
  const std::string mark = "\x1e" + nonce + " 13\n{\"error\":null}";
  EXPECT_FALSE(services::find_report("x" + mark.substr(0, mark.size() - 2), nonce)) << "its length is a lie";
  const std::string good = "\x1e" + nonce + " 14\n{\"error\":null}";
  const auto found = services::find_report("before" + good + "after", nonce);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, 6U);
  EXPECT_EQ(found->end, 6 + good.size());
  EXPECT_FALSE(services::find_report(good, std::string(32, 'b')));
}

TEST(CodeReport, NonsenseIsNoReport) {
  const std::string mark = "\x1e" + std::string(32, 'a') + " ";
  for (const char* rest : {"", "\n", "2\n[]", "99999999999999999999\n{}", "-1\n{}", "2 {}", "2\n{", "3\n{x}"})
    EXPECT_FALSE(services::find_report(mark + rest, std::string(32, 'a'))) << rest;
  EXPECT_TRUE(services::find_report(mark + "2\n{}" + mark + "9\n{}", std::string(32, 'a'))) << "the last that is whole";
}

TEST(CodeOutcome, NothingOfAReportIsBelievedButItsShape) {
  const json::Value report = {
      {"error", {{"ename", 3}, {"traceback", {"a", 1, nullptr}}}},
      {"outputs", {1, {{"output_type", "stream"}}, {{"output_type", "display_data"}, {"data", {{"x", 1}, {"y", "z"}}}}}}};
  const auto outcome = services::make_outcome("", "", report, 1);
  ASSERT_TRUE(outcome);
  ASSERT_EQ(outcome->outputs.size(), 2U);
  EXPECT_EQ(outcome->outputs[0]["data"], json::Value({{"y", "z"}}));
  EXPECT_EQ(outcome->error->name, "");
  EXPECT_EQ(outcome->error->traceback, std::vector<std::string>{"a"});
  EXPECT_TRUE(services::make_outcome("", "", json::Value({{"error", 7}, {"outputs", "x"}}), 0));
}

TEST(Toolchains, LinesThatAreNoneAreLeftOut) {
  const auto tools = services::parse_toolchains(
      "python\t3.11.2\t/usr/bin/python3\npython\tx\t/y\nnode\t20.1.0\t/usr/bin/node\n"
      "tool\tg++\t/usr/bin/g++\ntool\tgo\trelative\nnonsense\npython\t3.12.1\t/opt/python/a/bin/python3");
  ASSERT_EQ(tools.python.size(), 2U);
  EXPECT_EQ(tools.tools.size(), 1U);
  EXPECT_EQ(tools.choose(Language::python, "")->version, "3.11.2");
  for (const char* name : {"3.12", "python3.12", "3.12.1"})
    EXPECT_EQ(tools.choose(Language::python, name)->path, "/opt/python/a/bin/python3");
  for (const char* name : {"node20", "20", "v20.1", "20.1.0"}) EXPECT_TRUE(tools.choose(Language::javascript, name)) << name;
  EXPECT_FALSE(tools.choose(Language::javascript, "2")) << "no prefix of a number";
  EXPECT_NE(tools.choose(Language::python, "2.7").error().what.find("python3.11 (3.11.2), python3.12 (3.12.1)"),
            std::string::npos);
}

TEST(Toolchains, Flaw01NoLineOfAHostileProgramBecomesAToolchain) {
  for (const char* line : {"node\t20.1.0\t/home/gem/.local/bin/node",
                           "node\t20.1.0\t/usr/bin/../../home/gem/node",
                           "node\t20.1.0\t/usr/bin/env",
                           "node\t20.1.0\t/usr/bin/node\t/usr/bin/node",
                           "node\tv20\t/usr/bin/node",
                           "node\t20.\t/usr/bin/node",
                           "node\t.20\t/usr/bin/node",
                           "node\t20..1\t/usr/bin/node",
                           "node\t\t/usr/bin/node",
                           "node\t20.1.0 \t/usr/bin/node",
                           "node\t20.1.0\t/opt/python/a/bin/python3",
                           "python\t3.11.2\t/tmp/python3",
                           "python\t3.11.2\t/usr/bin/node",
                           "tool\tgcc\t/home/gem/.cargo/bin/gcc",
                           "tool\tgcc\t/usr/bin/sh",
                           "tool\t\t/usr/bin/",
                           "tool\t..\t/usr/..",
                           "tool\tgcc\t/usr/bin/\x1b[2J/gcc",
                           "tool\tgcc\t/usr//bin/gcc",
                           "tool\tgcc\tgcc",
                           "Node\t20.1.0\t/usr/bin/node"}) {
    const auto tools = services::parse_toolchains(line);
    EXPECT_TRUE(tools.node.empty() && tools.python.empty() && tools.tools.empty()) << line;
  }
}

TEST(Code, Flaw01WhatTheSystemHasIsAskedApartAndForEachWorkspace) {
  Harness h(cold());
  const auto before = h.run(h.workspace->code.inventory());
  ASSERT_TRUE(before);
  EXPECT_EQ(*before, *h.run(h.workspace->code.inventory())) << "asked once";
  h.workspace->code.serve_workspace("other");
  const auto after = h.run(h.workspace->code.inventory());
  ASSERT_TRUE(after);
  EXPECT_NE(*before, *after);
  const auto creates = h.fake.creates();
  ASSERT_EQ(creates.size(), 2U);
  for (const json::Value& create : creates) EXPECT_EQ(create.value("isolation", ""), "private") << create.dump();
  EXPECT_EQ(creates[1].value("workspace", ""), "other");
}

TEST(Code, ARunIsASessionThatIsGoneAfterwards) {
  Harness h(cold());
  EXPECT_EQ(python(h, "print(1)")["data"]["stdout"], "1\n");
  const int made = h.fake.sessions_created;
  EXPECT_EQ(python(h, "print(2)")["data"]["stdout"], "2\n");
  EXPECT_TRUE(h.eventually([&] { return h.fake.sessions_destroyed == made + 1 && h.workspace->code.sessions() == 0; }));
  EXPECT_EQ(h.fake.sessions_created, made + 1);
}

TEST(Code, SessionsArePreparedAndTakenOnce) {
  Harness h;
  EXPECT_EQ(python(h, "print(1)")["data"]["stdout"], "1\n");
  (void)h.eventually([&] { return h.workspace->code.prepared() >= 2; });
  ASSERT_EQ(h.workspace->code.prepared(), 2U);
  const int made = h.fake.sessions_created;
  EXPECT_EQ(python(h, "print(2)")["data"]["stdout"], "2\n");
  EXPECT_LE(h.fake.sessions_created, made + 1) << "one that was there, and one for the next";
  h.workspace->code.flush();
  EXPECT_EQ(h.workspace->code.prepared(), 0U);
}

TEST(Code, PreparedSessionsEndWithTheirPolicies) {
  Harness h;
  h.client.on_policy_reload([&] { h.workspace->code.flush(); });
  EXPECT_EQ(python(h, "1")["success"], true);
  (void)h.eventually([&] { return h.workspace->code.prepared() >= 2; });
  ASSERT_EQ(h.workspace->code.prepared(), 2U);
  h.fake.tell_reload = true;
  (void)h.run(h.client.session_list(""));
  EXPECT_EQ(h.workspace->code.prepared(), 0U);
  h.client.on_policy_reload(nullptr);
}

TEST(Code, AnExitCodeIsOneHoweverItCame) {
  Harness h;
  EXPECT_EQ(python(h, "import os; os._exit(3)")["data"]["exit_code"], 3);
  EXPECT_EQ(python(h, "import os; os.kill(os.getpid(), 9)")["data"]["exit_code"], 137);
}

TEST(Code, ATimeoutKeepsTheOutputAndEndsTheSession) {
  Harness h(cold());
  const json::Value r = python(h, "print('part')\nimport time; time.sleep(60)", {{"timeout", 4}});
  EXPECT_EQ(r["data"]["status"], "timeout");
  EXPECT_EQ(r["data"]["stdout"], "part\n");
  EXPECT_EQ(r["data"]["exit_code"], 124);
  EXPECT_TRUE(h.eventually([&] { return h.workspace->code.sessions() == 0; }));
}

TEST(Code, ASessionThatCannotBeHadIsAFailureOfTheTool) {
  Harness h(cold());
  h.fake.refuse_creates = 1;
  const json::Value r = python(h, "1");
  EXPECT_EQ(r["success"], false);
  EXPECT_NE(r["message"].get<std::string>().find("too many sessions"), std::string::npos);
  EXPECT_EQ(h.workspace->code.sessions(), 0U);
}

TEST(Code, TheQuotaHoldsAndPreparedSessionsMakeRoom) {
  services::Config config;
  config.max_code_sessions = 4;
  Harness h(config);
  python(h, "1");
  for (int i = 0; i < 100 && h.workspace->code.prepared() < 2; ++i) h.idle(std::chrono::milliseconds(20));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(python(h, "1", {{"session_id", name}})["success"], true) << name;
  EXPECT_LE(h.workspace->code.sessions(), 4U);
  EXPECT_EQ(python(h, "print(1)")["data"]["stdout"], "1\n");
}

TEST(Repl, KeepsItsVariablesThroughErrorsAndTimeouts) {
  Harness h;
  for (const char* language : {"python", "javascript"}) {
    const auto ask = [&](const std::string& code, int timeout = 60) {
      return h.post("/v1/code/execute",
                    {{"language", language}, {"code", code}, {"session_id", language}, {"timeout", timeout}})["data"];
    };
    EXPECT_EQ(ask("x = 1")["status"], "ok");
    EXPECT_EQ(ask("undefined_name")["exit_code"], 1);
    EXPECT_EQ(ask(language == std::string("python") ? "while True: pass" : "while (true);", 1)["status"], "timeout");
    EXPECT_EQ(ask("x")["outputs"][0]["data"]["text/plain"], "1") << language;
  }
}

TEST(Repl, OutputBetweenTwoJobsIsShownWithTheSecond) {
  Harness h;
  const std::string path = h.home() + "/printed";
  const std::string later = "def later(): print('later', flush=True); open('" + path + "', 'w')\n";
  python(h, "import threading\n" + later + "threading.Timer(0.05, later).start()", {{"session_id", "t"}});
  ASSERT_TRUE(h.eventually([&] { return std::filesystem::exists(path); }));
  EXPECT_EQ(python(h, "print('now')", {{"session_id", "t"}})["data"]["stdout"], "later\nnow\n");
}

TEST(Repl, EndsWhenItIsIdleForItsTimeAndNotWhileItIsUsed) {
  Harness h(cold());
  const auto inventory = h.run(h.workspace->code.inventory());
  ASSERT_TRUE(inventory) << inventory.error().text();
  const auto make = [&](const char* id, std::int64_t max_idle_s) {
    services::ReplService::CreateParams params{.session_id = id, .max_idle_s = max_idle_s};
    params.interpreter = *(*inventory)->choose(Language::javascript, "");
    return h.run(h.workspace->code.node().create(std::move(params))).has_value();
  };
  ASSERT_TRUE(make("lasting", 86'400) && make("used", 3) && make("idle", 3));
  const int ended = h.fake.sessions_destroyed;
  const auto use = [&] { return h.post("/v1/nodejs/execute", {{"code", "1"}, {"session_id", "used"}}); };
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(use()["hint"], nullptr) << "it was made anew";
    h.idle(std::chrono::milliseconds(600));
  }
  const json::Value left = h.get("/v1/nodejs/sessions")["data"]["sessions"];
  EXPECT_TRUE(left.contains("lasting") && left.contains("used") && !left.contains("idle")) << left;
  EXPECT_TRUE(h.eventually([&] { return h.fake.sessions_destroyed == ended + 1; })) << "its processes end with it";
  h.get("/v1/nodejs/sessions/idle");
  EXPECT_EQ(h.status, 404);
}

TEST(RunCode, CompilesRunsAndFetches) {
  Harness h;
  const json::Value r = h.post("/run_code", {{"language", "bash"},
                                             {"code", "cat given; echo err >&2; echo made > out; exit 2"},
                                             {"files", {{"given", "aGk="}}},
                                             {"fetch_files", {"out", "none"}}});
  EXPECT_EQ(r["status"], "Failed");
  EXPECT_EQ(r["run_result"]["stdout"], "hi");
  EXPECT_EQ(r["run_result"]["stderr"], "err\n");
  EXPECT_EQ(r["run_result"]["return_code"], 2);
  EXPECT_EQ(r["files"], json::Value({{"out", "bWFkZQo="}}));
}

TEST(RunCode, ALanguageThatIsNotHereIsAnsweredWithTheList) {
  Harness h;
  const json::Value r = h.post("/run_code", {{"language", "cobol"}, {"code", ""}});
  EXPECT_EQ(r["status"], "SandboxError");
  EXPECT_NE(r["message"].get<std::string>().find("available: python"), std::string::npos) << r;
  EXPECT_EQ(h.status, 200);
}

}  // namespace
}  // namespace caisson::testing
