// Words in, exit status and text out: dispatch, options, and the commands that need no launcher.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/logs.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::cli {
namespace {

std::vector<std::string> seen_args;
Options seen_options;
int record_raw(Arguments args, const Options& options) {
  seen_args.assign(args.begin(), args.end());
  seen_options = options;
  return 7;
}
Result<int> record(const Args& args, const Options& options) { return record_raw(args.words(), options); }

std::vector<Command> commands() {
  std::vector<Command> out(all_commands().begin(), all_commands().end());
  std::erase_if(out, [](const Command& c) { return c.name == "run"; });
  out.push_back({"plain", "s", "caisson plain\n", Syntax({}, 0, 9), record});
  out.push_back({"run", "s", "caisson run\n", Syntax({}, 0, 0, record_raw), nullptr});
  return out;
}

struct Outcome {
  int status;
  std::string out, err;
};
Outcome caisson(std::vector<std::string> words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = dispatch(commands(), words);
  std::fflush(stdout);
  std::string out = ::testing::internal::GetCapturedStdout();
  return {status, std::move(out), ::testing::internal::GetCapturedStderr()};
}

TEST(Dispatch, GlobalOptionsAreTakenBeforeAndBehindTheCommand) {
  EXPECT_EQ(caisson({"--json", "plain", "a", "--audit", "/x", "b", "--run=/r", "--", "--json"}).status, 7);
  EXPECT_EQ(seen_args, (std::vector<std::string>{"a", "b", "--json"}));
  EXPECT_TRUE(seen_options.json);
  EXPECT_EQ(seen_options.audit, "/x");
  EXPECT_EQ(seen_options.run, "/r");
}

TEST(Dispatch, ARawCommandGetsItsWordsUntouched) {
  EXPECT_EQ(caisson({"--audit", "/x", "run", "--json", "--", "a", "--help"}).status, 7);
  EXPECT_EQ(seen_args, (std::vector<std::string>{"--json", "--", "a", "--help"}));
  EXPECT_FALSE(seen_options.json);
  EXPECT_EQ(seen_options.audit, "/x");
}

TEST(Dispatch, VersionIsFoundAsAnOption) {
  EXPECT_EQ(caisson({"--version"}).status, 0);
  EXPECT_EQ(caisson({"--version", "--json"}).out, caisson({"version", "--json"}).out);
}

TEST(Dispatch, HelpIsFoundEverywhere) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "--help"}, {"--help", "run"}, {"help", "run"}, {"run", "-h", "--", "x"}}) {
    const Outcome r = caisson(words);
    EXPECT_EQ(r.status, 0);
    EXPECT_EQ(r.out, "usage: caisson run\n");
  }
  EXPECT_TRUE(caisson({"audit", "--help"}).out.contains("audit verify"));
  EXPECT_EQ(caisson({"audit"}).status, 2);
  EXPECT_EQ(caisson({}).status, 2);
  EXPECT_EQ(caisson({"--help"}).status, 0);
}

TEST(Dispatch, UnknownWordsNameWhatWasMeant) {
  EXPECT_TRUE(caisson({"audit", "verfy"}).err.contains("meant 'audit verify'?"));
  EXPECT_TRUE(caisson({"plian"}).err.contains("meant 'plain'?"));
  EXPECT_EQ(caisson({"\x1b[2J"}).status, 2);
  EXPECT_FALSE(caisson({"\x1b[2J"}).err.contains('\x1b'));
  const Outcome r = caisson({"nonsense", "--json"});
  EXPECT_EQ(json::parse(r.out)->at("error").at("code"), "invalid_argument");
  EXPECT_EQ(caisson({"plain", "--audit"}).status, 2);
}

TEST(Args, FlagsWordsAndValues) {
  static constexpr Flag kFlags[] = {{"--lines", "-n", true}, {"--follow", "-f", false}};
  const std::vector<std::string> words = {"a", "-n", "5", "--lines=6", "-f", "-", "--", "--follow"};
  const auto args = Args::parse(words, kFlags, 0, 3);
  ASSERT_TRUE(args) << args.error().what;
  EXPECT_EQ(args->words(), (std::vector<std::string>{"a", "-", "--follow"}));
  EXPECT_EQ(args->all("--lines"), (std::vector<std::string>{"5", "6"}));
  EXPECT_EQ(args->last("--lines"), "6");
  EXPECT_EQ(args->before(), 2U);
  EXPECT_TRUE(args->has("--follow"));
}

TEST(Args, WhatIsWrongIsNamed) {
  static constexpr Flag kFlags[] = {{"--lines", "-n", true}, {"--follow", "-f", false}};
  const auto error = [](std::vector<std::string> words) { return Args::parse(words, kFlags, 1, 1).error().what; };
  EXPECT_TRUE(error({"--follw"}).contains("meant '--follow'?"));
  EXPECT_TRUE(error({"x", "--lines"}).contains("needs a value"));
  EXPECT_TRUE(error({"--lines", "--", "x"}).contains("needs a value"));
  EXPECT_TRUE(error({"x", "--follow=1"}).contains("takes no value"));
  EXPECT_TRUE(error({}).contains("missing"));
  EXPECT_TRUE(error({"x", "y"}).contains("'y'"));
}

class AuditCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    log_ = audit::small_log(dir_);
    auto launcher = audit::Log::create(dir_.path(), "launcher");
    ASSERT_TRUE(launcher->append(audit::Event::boot, {{"version", "1"}}));
    const json::Value end = {{"file", "s-1.ndjson"}, {"count", log_->count()}, {"head", log_->head()}};
    ASSERT_TRUE(launcher->append(audit::Event::session_end, end));
  }
  Outcome audit(std::vector<std::string> words) {
    words.insert(words.begin(), {"--audit", dir_.path(), "audit"});
    return caisson(std::move(words));
  }
  void damage(const std::string& from, const std::string& to) {
    std::string text = dir_.read("s-1");
    text.replace(text.find(from), from.size(), to);
    const Fd fd = sys::open(dir_.file("s-1"), O_WRONLY | O_TRUNC).value();
    ASSERT_TRUE(sys::write_all(fd.get(), text));
  }
  audit::LogDir dir_;
  std::optional<audit::Log> log_;
};

TEST_F(AuditCommands, VerifyAcceptsWhatWasWritten) {
  const Outcome r = audit({"verify"});
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_TRUE(r.out.contains("s-1.ndjson': intact, 4 records, count and head as in the launcher's log")) << r.out;
  EXPECT_EQ(audit({"verify", "s-1", "--complete"}).status, 0);
}

TEST_F(AuditCommands, VerifyNamesThePlaceAndExits20) {
  damage("/home/gem", "/home/bad");
  const Outcome r = audit({"verify", "s-1"});
  EXPECT_EQ(r.status, kExitBrokenLog);
  EXPECT_TRUE(r.out.contains("line 3, byte ")) << r.out;
  const Outcome j = audit({"verify", "--json"});
  EXPECT_EQ(j.status, kExitBrokenLog);
  EXPECT_EQ(json::parse(j.out)->at("ok"), false);
}

TEST_F(AuditCommands, VerifyNoticesARemovedLog) {
  ::unlink(dir_.file("s-1").c_str());
  const Outcome r = audit({"verify"});
  EXPECT_EQ(r.status, kExitBrokenLog);
  EXPECT_TRUE(r.out.contains("missing: the launcher's log counts 4 records")) << r.out;
}

TEST_F(AuditCommands, VerifyNoticesThatTheIndexIsGone) {
  ::unlink(dir_.file("launcher").c_str());
  const Outcome r = audit({"verify"});
  EXPECT_EQ(r.status, kExitBrokenLog);
  EXPECT_TRUE(r.out.contains("missing: the launcher's log is the index")) << r.out;
}

TEST_F(AuditCommands, VerifyNoticesAnEndThatTheIndexDoesNotHave) {
  auto later = audit::Log::create(dir_.path(), "s-2");
  ASSERT_TRUE(later->append(audit::Event::session_request, {}));
  EXPECT_EQ(audit({"verify"}).status, 0);  // it may be running
  ASSERT_TRUE(later->append(audit::Event::session_end, {}));
  const Outcome r = audit({"verify"});
  EXPECT_EQ(r.status, kExitBrokenLog);
  EXPECT_TRUE(r.out.contains("s-2.ndjson': BROKEN") && r.out.contains("not in the launcher's log")) << r.out;
}

TEST_F(AuditCommands, AnOpenLogIsBrokenOnlyIfAskedToBeComplete) {
  auto open = audit::Log::create(dir_.path(), "s-2");
  ASSERT_TRUE(open->append(audit::Event::session_request, {}));
  EXPECT_EQ(audit({"verify", "s-2"}).status, 0);
  EXPECT_TRUE(audit({"verify", "s-2"}).out.contains("open or cut"));
  EXPECT_EQ(audit({"verify", "s-2", "--complete"}).status, kExitBrokenLog);
}

TEST_F(AuditCommands, ShowPrintsLinesOrOneDocument) {
  const Outcome r = audit({"show", "s-1", "-e", "exec_request"});
  EXPECT_EQ(r.status, 0);
  EXPECT_TRUE(r.out.contains("argv=[bash -c true]  cwd=/home/gem\n")) << r.out;
  EXPECT_EQ(json::parse(audit({"show", "s-1", "--json"}).out)->size(), 4U);
  EXPECT_EQ(json::parse(audit({"show", "s-1", "--json", "--since", "2999-01-01"}).out)->size(), 0U);
  EXPECT_EQ(audit({"show", "s-1", "--event", "nonsense"}).status, 2);
  EXPECT_EQ(audit({"show", "s-9"}).status, 3);
}

TEST_F(AuditCommands, ShowOfADamagedLogIsSafeAndSaysSo) {
  damage("{\"seq\":2", "\x1b[2J\xff");
  const Outcome r = audit({"show", "s-1"});
  EXPECT_EQ(r.status, kExitBrokenLog);
  EXPECT_FALSE(r.out.contains('\x1b'));
  EXPECT_TRUE(json::parse(audit({"show", "s-1", "--json"}).out)) << "still one document";
}

TEST_F(AuditCommands, TailGivesTheLastRecords) {
  EXPECT_TRUE(audit({"tail", "-n", "1", "s-1", "--json"}).out.starts_with("{\"event\":\"session_end\""));
  EXPECT_EQ(audit({"tail", "-n", "0", "s-1"}).out, "");
  EXPECT_EQ(audit({"tail", "-n", "x", "s-1"}).status, 2);
  EXPECT_TRUE(audit({"tail"}).out.contains("boot"));
}

TEST_F(AuditCommands, FollowPrintsWhatComesAndEndsWithTheSession) {
  auto open = audit::Log::create(dir_.path(), "s-2");
  ASSERT_TRUE(open->append(audit::Event::session_request, {}));
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(open->append(audit::Event::exec_request, {}));
    EXPECT_TRUE(open->append(audit::Event::session_end, {}));
  });
  const Outcome r = audit({"tail", "-f", "s-2"});
  writer.join();
  EXPECT_EQ(r.status, 0);
  EXPECT_TRUE(r.out.contains("session_request") && r.out.contains("exec_request") && r.out.contains("session_end")) << r.out;
}

TEST_F(AuditCommands, LsTellsEndedFromOpen) {
  auto open = audit::Log::create(dir_.path(), "s-2");
  ASSERT_TRUE(open->append(audit::Event::session_request, {{"domain", "bash"}, {"label", "a\nb"}}));
  const Outcome r = audit({"ls"});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(std::ranges::count(r.out, '\n'), 4) << r.out;
  EXPECT_TRUE(r.out.contains("destroyed") && r.out.contains("open") && r.out.contains("\"a\\nb\"")) << r.out;
  EXPECT_EQ(json::parse(audit({"ls", "--json"}).out)->at("logs").size(), 3U);
}

TEST(PolicyCommands, CheckAndExplainTheShippedPolicies) {
  const std::string policies = std::string(CAISSON_SOURCE_DIR) + "/policies";
  EXPECT_EQ(caisson({"policy", "check", policies}).status, 0);
  EXPECT_EQ(caisson({"policy", "explain", "bash", "--policies", policies}).status, 0);
  const Outcome explained = caisson({"policy", "explain", "bash", "--policies", policies, "--json"});
  EXPECT_EQ(json::parse(explained.out, {.max_bytes = 1 << 20})->at("domain"), "bash");
  const Outcome r = caisson({"policy", "explain", "bsah", "--policies", policies});
  EXPECT_EQ(r.status, 3);
  EXPECT_TRUE(r.err.contains("meant 'bash'?")) << r.err;
}

TEST(PolicyCommands, EveryProblemIsPrinted) {
  const audit::LogDir dir;
  for (const char* name : {"base.json", "x.json"}) {
    const Fd fd = sys::open(dir.path() + "/" + name, O_WRONLY | O_CREAT, 0600).value();
    ASSERT_TRUE(sys::write_all(fd.get(), "{\n \"grnts\": [],\n \"min_teir\": 1}"));
  }
  const Outcome r = caisson({"policy", "check", dir.path()});
  EXPECT_EQ(r.status, kExitBadPolicy);
  EXPECT_TRUE(r.out.contains("base.json:2 /grnts") && r.out.contains("x.json:3 /min_teir")) << r.out;
  EXPECT_GE(json::parse(caisson({"policy", "check", dir.path(), "--json"}).out)->at("problems").size(), 4U);
}

TEST(Table, AlignsAndTrims) { EXPECT_EQ(table({{"A", "B"}, {"long", "x"}}), "A     B\nlong  x\n"); }

}  // namespace
}  // namespace caisson::cli
