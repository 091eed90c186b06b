// Which logs are deleted, and what is kept of them.
#include "launcher/logs/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>

#include "launcher/cli/audit/verify.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::audit {
namespace {

constexpr std::int64_t kDay = 86'400LL * 1'000'000'000;

class Stores : public ::testing::Test {
 protected:
  Stores() { clock(0); }
  // The log of an ended session, `days` old, of about `bytes`.
  void ended(const std::string& id, int days, std::size_t bytes = 1'000, const json::Value& asked = nullptr) {
    auto log = Log::create(dir_.path(), id);
    if (!asked.is_null()) ASSERT_TRUE(log->append(Event::session_request, asked));
    while (log->bytes() < bytes) ASSERT_TRUE(log->append(Event::exec_request, {{"argv", {std::string(500, 'x')}}}));
    ASSERT_TRUE(log->append(Event::session_end, {}));
    heads_[id] = log->head();
    age(id, days);
  }
  // As if its records had been written then.
  void age(const std::string& id, int days) {
    std::string text = dir_.read(id);
    const std::string then = sys::rfc3339(now_ - days * kDay), key = "\"time\":\"";
    for (std::size_t at = 0; (at = text.find(key, at)) != std::string::npos; ++at)
      text.replace(at + key.size(), then.size(), then);
    write(dir_.file(id), text);
  }
  // What an earlier launcher wrote of the time, `days` ago.
  void clock(int days) { write(dir_.path() + "/clock", std::to_string(now_ - days * kDay)); }
  static void write(const std::string& path, const std::string& text) {
    const auto fd = sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ASSERT_TRUE(fd && sys::write_all(fd->get(), text));
  }
  [[nodiscard]] std::string id_of(int days, int number) const {
    char id[32];
    std::snprintf(id, sizeof id, "s-%08x%08d", static_cast<unsigned>((now_ - days * kDay) / 1'000'000'000), number);
    return id;
  }
  // With the wall clock off by some days, when the launcher has run for some hours. false: there is more to do.
  bool swept(std::uint64_t max_bytes, std::uint64_t keep_days = 30, const std::string& running = "", int off_days = 0,
             int hours = 0, const std::string& boot = "b0") {
    deleted_.clear();
    kept_.clear();
    return sweep(dir_.path(), {.now_ns = now_ + off_days * kDay,
                               .mono_us = 1'000'000 + hours * 3'600'000'000LL,
                               .boot = boot,
                               .keep_days = keep_days,
                               .max_bytes = max_bytes,
                               .may_go =
                                   [&](const json::Value& fields) {
                                     const bool go = running.empty() || !fields["file"].get<std::string>().starts_with(running);
                                     if (go) deleted_.push_back(fields);
                                     return go;
                                   },
                               .keep_root = [this](const json::Value& root) { kept_.push_back(root); }});
  }
  [[nodiscard]] std::vector<std::string> gone() const {
    std::vector<std::string> out;
    for (const json::Value& fields : deleted_) out.push_back(fields["file"].get<std::string>());
    return out;
  }

  LogDir dir_;
  std::int64_t now_ = sys::realtime_ns();
  std::map<std::string, std::string> heads_;
  std::vector<json::Value> deleted_, kept_;
};

TEST_F(Stores, DeletesWhatIsOlderThanItIsKeptAndSaysSo) {
  ended("s-0000000000000001", 40);
  ended("s-0000000000000002", 10);
  EXPECT_TRUE(swept(1 << 30));
  ASSERT_EQ(gone(), std::vector<std::string>{"s-0000000000000001.ndjson"});
  EXPECT_EQ(deleted_[0]["why"], "age");
  EXPECT_EQ(deleted_[0]["head"], heads_["s-0000000000000001"]);
  EXPECT_EQ(deleted_[0]["count"], 3);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("s-0000000000000001")));
  EXPECT_TRUE(std::filesystem::exists(dir_.file("s-0000000000000002")));
}

TEST_F(Stores, ALogIsKeptForAsLongAsItsOwnPolicySaid) {
  ended("s-0000000000000001", 40, 1'000, {{"keep_days", 365}});
  ended("s-0000000000000002", 3, 1'000, {{"keep_days", 2}});
  EXPECT_TRUE(swept(1 << 30));
  EXPECT_EQ(gone(), std::vector<std::string>{"s-0000000000000002.ndjson"});
}

TEST_F(Stores, DeletesTheOldestUntilTheRestFitsAndNoneThatRuns) {
  for (int i = 1; i <= 4; ++i) ended("s-000000000000000" + std::to_string(i), 10 - i, 100'000);
  EXPECT_TRUE(swept(250'000, 30, "s-0000000000000001"));
  EXPECT_EQ(gone(), (std::vector<std::string>{"s-0000000000000002.ndjson", "s-0000000000000003.ndjson"}));
  EXPECT_EQ(deleted_[0]["why"], "room");
}

TEST_F(Stores, ASweepIsBounded) {
  for (int i = 0; i < 300; ++i) {
    char id[24];
    std::snprintf(id, sizeof id, "s-%016d", i);
    ended(id, 40);
  }
  EXPECT_FALSE(swept(1 << 30));
  EXPECT_EQ(deleted_.size(), kMaxDeletions);
  EXPECT_TRUE(swept(1 << 30));
  EXPECT_EQ(deleted_.size(), 300 - kMaxDeletions);
}

TEST_F(Stores, TheLaunchersEarlierLogsStayWhileALogIsCheckedAgainstThem) {
  ended("launcher-20260101T000000000000Z", 40);
  ended("launcher-20260102T000000000000Z", 35);
  ended(id_of(38, 1), 38, 1'000, {{"keep_days", 60}});
  EXPECT_TRUE(swept(1 << 30));
  EXPECT_EQ(gone(), std::vector<std::string>{"launcher-20260101T000000000000Z.ndjson"}) << "it ended before the session did";
}

// A session with the launcher's uid can set the times, the attributes and the mode of any log.
TEST_F(Stores, Flaw06WhatASessionDoesToALogsInodeDeletesAndKeepsNothing) {
  const std::string young = id_of(3, 1), old = id_of(40, 2), hidden = id_of(40, 3);
  ended(young, 3, 1'000, {{"keep_days", 30}});
  ended(old, 40, 1'000, {{"keep_days", 30}});
  ended(hidden, 40, 1'000, {{"keep_days", 365}});
  const timespec past[2] = {{1, 0}, {1, 0}}, future[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, dir_.file(young).c_str(), past, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, dir_.file(hidden).c_str(), past, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, dir_.file(old).c_str(), future, 0), 0);
  (void)::setxattr(dir_.file(young).c_str(), "user.caisson.keep_days", "0", 1, 0);  // not every file system has them
  (void)::setxattr(dir_.file(old).c_str(), "user.caisson.keep_days", "36500", 5, 0);
  ASSERT_EQ(::chmod(dir_.file(hidden).c_str(), 0), 0);
  EXPECT_TRUE(swept(1 << 30));
  EXPECT_EQ(gone(), std::vector<std::string>{old + ".ndjson"});
  struct stat st{};
  ASSERT_EQ(::stat(dir_.file(hidden).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600U);
}

TEST_F(Stores, Flaw06TheTimesOfFilesDoNotSayWhichLogIsTheOldest) {
  for (int i = 1; i <= 4; ++i) {
    ended(id_of(10 - i, i), 10 - i, 100'000);
    const timespec times[2] = {{1'000 - i, 0}, {1'000 - i, 0}};  // the other way round
    ASSERT_EQ(::utimensat(AT_FDCWD, dir_.file(id_of(10 - i, i)).c_str(), times, 0), 0);
  }
  EXPECT_TRUE(swept(250'000));
  EXPECT_EQ(gone(), (std::vector<std::string>{id_of(9, 1) + ".ndjson", id_of(8, 2) + ".ndjson"}));
}

TEST_F(Stores, Flaw06AClockThatJumpsForwardDeletesNothingAtOnceNorAfterARestart) {
  ended(id_of(3, 1), 3);
  ended("launcher-20260101T000000000000Z", 3);
  EXPECT_TRUE(swept(1 << 30));
  EXPECT_TRUE(swept(1 << 30, 30, "", 4'000, 1));
  EXPECT_EQ(gone(), std::vector<std::string>{});
  for (int restarts = 0; restarts < 3; ++restarts) {
    EXPECT_TRUE(swept(1 << 30, 30, "", 4'000, 50 * 24, "b" + std::to_string(restarts + 1)));
    EXPECT_EQ(gone(), std::vector<std::string>{});
  }
  EXPECT_TRUE(swept(1 << 30, 30, "", 0, 2)) << "it was set right";
  EXPECT_EQ(gone(), std::vector<std::string>{});
  EXPECT_TRUE(swept(1 << 30, 30, "", 4'000, 30 * 24)) << "it says so for weeks";
  EXPECT_EQ(gone().size(), 2U);
}

TEST_F(Stores, Flaw06WithoutAWordOfAnEarlierLauncherTheNewestSessionSaysWhatTimeItWas) {
  ASSERT_EQ(::unlink((dir_.path() + "/clock").c_str()), 0);
  ended(id_of(40, 1), 40);
  ended(id_of(1, 2), 1);
  EXPECT_TRUE(swept(1 << 30, 30, "", 4'000));
  EXPECT_EQ(gone(), std::vector<std::string>{id_of(40, 1) + ".ndjson"});
}

TEST_F(Stores, Flaw06AnotherLauncherFindsInTheLogHowLongItIsKept) {
  ended(id_of(40, 1), 40, 1'000, {{"keep_days", 365}, {"label", "\"keep_days\":1"}});
  ended(id_of(3, 2), 3, 1'000, {{"keep_days", 2}});
  EXPECT_TRUE(swept(1 << 30));
  EXPECT_EQ(gone(), std::vector<std::string>{id_of(3, 2) + ".ndjson"});
}

TEST_F(Stores, Flaw16ANoisyWorkspaceLosesItsOwnLogsAndNoOthers) {
  ended(id_of(20, 1), 20, 50'000, {{"workspace", "quiet"}});
  ended(id_of(19, 2), 19, 50'000, {{"workspace", "calm"}});
  for (int i = 3; i <= 8; ++i) ended(id_of(20 - i, i), 20 - i, 100'000, {{"workspace", "noisy"}});
  EXPECT_TRUE(swept(350'000));
  std::vector<std::string> expected;
  for (int i = 3; i <= 6; ++i) expected.push_back(id_of(20 - i, i) + ".ndjson");
  EXPECT_EQ(gone(), expected);
  EXPECT_EQ(deleted_[0]["why"], "room");
}

TEST_F(Stores, Flaw16LogsThatRunPushNobodyElsesOut) {
  ended(id_of(20, 1), 20, 50'000, {{"workspace", "quiet"}});
  ended(id_of(2, 2), 2, 400'000, {{"workspace", "noisy"}});
  EXPECT_TRUE(swept(250'000, 30, id_of(2, 2)));
  EXPECT_EQ(gone(), std::vector<std::string>{});
  EXPECT_TRUE(swept(250'000));
  EXPECT_EQ(gone(), std::vector<std::string>{id_of(2, 2) + ".ndjson"});
}

TEST_F(Stores, Flaw16EqualsGiveInTurn) {
  const char* const kWorkspaces[] = {"a", "b"};
  for (int i = 1; i <= 4; ++i) ended(id_of(10 - i, i), 10 - i, 100'000, {{"workspace", kWorkspaces[i % 2]}});
  EXPECT_TRUE(swept(250'000));
  std::vector<std::string> logs = gone();
  std::ranges::sort(logs);
  EXPECT_EQ(logs, (std::vector<std::string>{id_of(9, 1) + ".ndjson", id_of(8, 2) + ".ndjson"}));
}

TEST_F(Stores, Flaw16TheLaunchersOwnLogsTakeNoMoreThanTheirPartOfTheRoom) {
  ended("launcher-20260101T000000000000Z", 5, 300'000);
  ended(id_of(4, 1), 4, 100'000, {{"workspace", "quiet"}});
  EXPECT_TRUE(swept(200'000));
  EXPECT_EQ(gone(), std::vector<std::string>{"launcher-20260101T000000000000Z.ndjson"});
}

// The launcher's log of some days ago: the ends of these sessions, and others of a workspace that has ended many more.
TEST_F(Stores, WhatTheLauncherSaidOfLogsThatStayIsKeptWhenItsOwnLogGoes) {
  ended(id_of(20, 1), 20, 1'000, {{"workspace", "quiet"}});
  for (int i = 2; i < 42; ++i) ended(id_of(19, i), 19, 1'000, {{"workspace", "noisy"}});
  const std::string name = "launcher-20260101T000000000000Z";
  auto log = Log::create(dir_.path(), name);
  const auto end = [&](const std::string& id, const char* workspace) {
    ASSERT_TRUE(log->append(Event::session_end, {{"session", id},
                                                 {"workspace", workspace},
                                                 {"file", id + ".ndjson"},
                                                 {"count", 3},
                                                 {"head", heads_.contains(id) ? heads_[id] : std::string(64, '0')},
                                                 {"key", "k"},
                                                 {"signature", "x"}}));
  };
  end(id_of(20, 1), "quiet");
  for (int i = 2; i < 42; ++i) end(id_of(19, i), "noisy");
  for (int i = 42; i < 400; ++i) end(id_of(18, i), "noisy");  // whose logs went long ago
  age(name, 18);
  EXPECT_TRUE(swept(600'000));
  EXPECT_EQ(gone(), std::vector<std::string>{name + ".ndjson"});
  ASSERT_EQ(std::ranges::count(kept_, "quiet", [](const json::Value& root) { return root["workspace"]; }), 1);
  const auto noisy = std::ranges::count(kept_, "noisy", [](const json::Value& root) { return root["workspace"]; });
  EXPECT_TRUE(noisy > 0 && noisy < 40) << noisy << ": no more than its part";
  EXPECT_EQ(kept_.front()["session"], id_of(19, 41)) << "the newest first";
  // Kept once more when the log that they are in goes, and found by who verifies.
  auto later = Log::create(dir_.path(), "launcher-20260102T000000000000Z");
  for (const json::Value& root : kept_) ASSERT_TRUE(later->append(Event::log_root, root));
  const auto index = read_index(dir_.path());
  ASSERT_TRUE(index && index->ended.contains(id_of(20, 1) + ".ndjson"));
  EXPECT_EQ(index->ended.at(id_of(20, 1) + ".ndjson").head, heads_[id_of(20, 1)]);
  EXPECT_EQ(index->ended.at(id_of(20, 1) + ".ndjson").signature, "x");
  const std::size_t before = kept_.size();
  while (later->bytes() < 100'000) ASSERT_TRUE(later->append(Event::request_refused, {{"what", std::string(500, 'x')}}));
  EXPECT_TRUE(swept(600'000));
  EXPECT_EQ(kept_.size(), before);
}

TEST_F(Stores, WhatStaysIsNotAskedTwiceAndCountsAsTaken) {
  for (int i = 1; i <= 3; ++i) ended(id_of(10 - i, i), 10 - i, 100'000, {{"workspace", "a"}});
  EXPECT_TRUE(swept(150'000, 30, id_of(9, 1)));
  EXPECT_EQ(gone(), (std::vector<std::string>{id_of(8, 2) + ".ndjson", id_of(7, 3) + ".ndjson"}));
  EXPECT_TRUE(std::filesystem::exists(dir_.file(id_of(9, 1))));
}

}  // namespace
}  // namespace caisson::audit
