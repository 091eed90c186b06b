// Which logs are listed, opened and deleted.
#include "launcher/audit/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>

#include "launcher/audit/verify.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::audit {
namespace {

constexpr std::int64_t kDay = 86'400LL * 1'000'000'000;

class Stores : public ::testing::Test {
 protected:
  // The log of an ended session, `days` old, of about `bytes`.
  void ended(const std::string& id, int days, std::size_t bytes = 1'000) {
    auto log = Log::create(dir_.path(), id);
    while (log->bytes() < bytes) ASSERT_TRUE(log->append(Event::exec_request, {{"argv", {std::string(500, 'x')}}}));
    ASSERT_TRUE(log->append(Event::session_end, {}));
    heads_[id] = log->head();
    age(id, days);
  }
  void age(const std::string& id, int days) {
    const std::int64_t then = now_ - days * kDay;
    const timespec times[2] = {{then / 1'000'000'000, 0}, {then / 1'000'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, dir_.file(id).c_str(), times, 0), 0);
  }
  bool sweep(Store& store, std::uint64_t keep_days = 30, const std::string& running = "") {
    deleted_.clear();
    return store.sweep({now_, keep_days, [&](const std::string& id) { return id == running; },
                        [this](const json::Value& fields) { deleted_.push_back(fields); }});
  }
  [[nodiscard]] std::vector<std::string> gone() const {
    std::vector<std::string> out;
    for (const json::Value& fields : deleted_) out.push_back(fields["file"].get<std::string>());
    return out;
  }

  LogDir dir_;
  std::int64_t now_ = sys::realtime_ns();
  std::map<std::string, std::string> heads_;
  std::vector<json::Value> deleted_;
};

TEST_F(Stores, ListsTheNewestFirstAndPages) {
  for (int i = 0; i < 5; ++i) ended("s-000000000000000" + std::to_string(i), 0);
  Store store(dir_.path(), 1 << 30);
  EXPECT_TRUE(sweep(store));
  EXPECT_EQ(store.list("", 2), (std::vector<std::string>{"s-0000000000000004", "s-0000000000000003"}));
  EXPECT_EQ(store.list("s-0000000000000003", 2), (std::vector<std::string>{"s-0000000000000002", "s-0000000000000001"}));
  EXPECT_EQ(store.list("s-0000000000000000", 2), std::vector<std::string>{});
}

TEST_F(Stores, OpensSessionsLogsOnlyAndToBeReadOnly) {
  ended("s-0000000000000001", 0);
  ended("launcher", 0);
  Store store(dir_.path(), 1 << 30);
  EXPECT_TRUE(sweep(store));
  const auto fd = store.open_segment("s-0000000000000001", 0);
  ASSERT_TRUE(fd);
  EXPECT_EQ(::fcntl(fd->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  for (const char* name : {"launcher", "../x", "", "s-0000000000000002", "s-0000000000000001.ndjson"})
    EXPECT_EQ(store.open_segment(name, 0).error().code, Code::not_found) << name;
  EXPECT_EQ(store.open_segment("s-0000000000000001", 7).error().code, Code::not_found);
}

TEST_F(Stores, DeletesWhatIsOlderThanItIsKeptAndSaysSo) {
  ended("s-0000000000000001", 40);
  ended("s-0000000000000002", 10);
  Store store(dir_.path(), 1 << 30);
  EXPECT_TRUE(sweep(store));
  ASSERT_EQ(gone(), std::vector<std::string>{"s-0000000000000001.ndjson"});
  EXPECT_EQ(deleted_[0]["why"], "age");
  EXPECT_EQ(deleted_[0]["head"], heads_["s-0000000000000001"]);
  EXPECT_EQ(deleted_[0]["count"], 3);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("s-0000000000000001")));
  EXPECT_EQ(store.list("", 9), std::vector<std::string>{"s-0000000000000002"});
}

TEST_F(Stores, ALogIsKeptForAsLongAsItsOwnPolicySaid) {
  ended("s-0000000000000001", 40);
  ended("s-0000000000000002", 3);
  Store store(dir_.path(), 1 << 30);
  store.add("s-0000000000000001", 365);
  store.add("s-0000000000000002", 2);
  age("s-0000000000000001", 40), age("s-0000000000000002", 3);
  if (::getxattr(dir_.file("s-0000000000000001").c_str(), "user.caisson.keep_days", nullptr, 0) < 0)
    GTEST_SKIP() << "this file system has no user attributes";
  EXPECT_TRUE(sweep(store));
  EXPECT_EQ(gone(), std::vector<std::string>{"s-0000000000000002.ndjson"});
}

TEST_F(Stores, DeletesTheOldestUntilTheRestFitsAndNoneThatRuns) {
  for (int i = 1; i <= 4; ++i) ended("s-000000000000000" + std::to_string(i), 10 - i, 100'000);
  Store store(dir_.path(), 250'000);
  EXPECT_TRUE(sweep(store, 30, "s-0000000000000001"));
  EXPECT_EQ(gone(), (std::vector<std::string>{"s-0000000000000002.ndjson", "s-0000000000000003.ndjson"}));
  EXPECT_EQ(deleted_[0]["why"], "room");
}

TEST_F(Stores, ASweepIsBounded) {
  for (int i = 0; i < 300; ++i) {
    char id[24];
    std::snprintf(id, sizeof id, "s-%016d", i);
    ended(id, 40);
  }
  Store store(dir_.path(), 1 << 30);
  EXPECT_FALSE(sweep(store));
  EXPECT_EQ(deleted_.size(), Store::kMaxDeletions);
  EXPECT_TRUE(sweep(store));
  EXPECT_EQ(deleted_.size(), 300 - Store::kMaxDeletions);
}

TEST_F(Stores, TheLaunchersEarlierLogsStayWhileALogIsCheckedAgainstThem) {
  ended("launcher-20260101T000000000000Z", 40);
  ended("launcher-20260102T000000000000Z", 35);
  ended("s-0000000000000001", 38);
  Store store(dir_.path(), 1 << 30);
  store.add("s-0000000000000001", 60);
  age("s-0000000000000001", 38);
  if (::getxattr(dir_.file("s-0000000000000001").c_str(), "user.caisson.keep_days", nullptr, 0) < 0)
    GTEST_SKIP() << "this file system has no user attributes";
  EXPECT_TRUE(sweep(store));
  EXPECT_EQ(gone(), std::vector<std::string>{"launcher-20260101T000000000000Z.ndjson"}) << "it ended before the session did";
}

}  // namespace
}  // namespace caisson::audit
