// The table without a session in it: what a session does needs a kernel (tests/session).
#include "launcher/pid1/session/sessions.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "launcher/common/base/session_id.h"
#include "tests/unit/session/tables.h"

namespace caisson::session {
namespace {

ino_t file_of(const Fd& fd) {
  struct stat st{};
  EXPECT_EQ(::fstat(fd.get(), &st), 0);
  return st.st_ino;
}

struct SessionsTest : testing::Test {
  SessionsTest() { main.name = kDefaultWorkspace; }
  Tables tables;
  Workspace main{*tables.loop};
  Clients clients{tables.host, [](ipc::Connection&, const ipc::Connection::Request&) {}, [](std::uint64_t, ipc::Role) {}};
  Uids uids{tables.host};
  Domains domains{tables.host, uids, main, [](const Workspace&, const std::string&) {}};
  std::set<std::string> running;
  Logs logs{tables.host, domains, [this](const std::string& id) { return running.contains(id); }};
  Sessions sessions{tables.host, clients, domains, uids, logs, [](const std::string&) {}};
};

TEST_F(SessionsTest, NoneIsStartedOnceTheLauncherEnds) {
  bool done = false;
  EXPECT_FALSE(sessions.ending());
  sessions.shut_down([&done] { done = true; });
  EXPECT_FALSE(done) << "others of the same round may still need what goes";
  EXPECT_TRUE(sessions.ending());
  const auto refused = sessions.start(main, "bash", nullptr, main.place);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  tables.turn();
  EXPECT_TRUE(done);
}

TEST_F(SessionsTest, TheMemoryFileIsOneForAllAgentsUntilItIsForgotten) {
  for (const std::int64_t size : {0LL, 4095LL, (1LL << 30) + 1})
    EXPECT_EQ(sessions.keep_file(size).error().code, Code::invalid_argument);
  const Fd first = sessions.keep_file(8192).value(), second = sessions.keep_file(4096).value();
  EXPECT_EQ(file_of(first), file_of(second));
  EXPECT_EQ(::ftruncate(second.get(), 0), -1) << "who maps it must not be ended by what another does to it";
  EXPECT_EQ(::fcntl(second.get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  sessions.forget_kept();
  EXPECT_NE(file_of(sessions.keep_file(8192).value()), file_of(first));
}

TEST_F(SessionsTest, AnAgentHasTakenUpAllWhenNothingIsLeft) {
  EXPECT_FALSE(sessions.took_up());
  EXPECT_EQ(sessions.adopt(1), nullptr);
  EXPECT_TRUE(sessions.took_up());
  sessions.agent_comes();
  EXPECT_FALSE(sessions.took_up()) << "the next one has not asked";
}

TEST_F(SessionsTest, LogsAreListedTheNewestFirstAndOpenedByTheirIdsAlone) {
  const std::string ids[] = {session_id(1ULL << 32), session_id(2ULL << 32), session_id(3ULL << 32)};
  for (const int i : {1, 0, 2}) logs.add(ids[i]);
  running.insert(ids[2]);
  const json::Value all = logs.list("", 100).value();
  EXPECT_EQ(all, (json::Value{{{"session", ids[2]}, {"running", true}},
                              {{"session", ids[1]}, {"running", false}},
                              {{"session", ids[0]}, {"running", false}}}));
  EXPECT_EQ(logs.list(ids[2], 1).value(), (json::Value::array({{{"session", ids[1]}, {"running", false}}})));
  EXPECT_EQ(logs.list("launcher", 1).error().code, Code::invalid_argument);
  const auto none = logs.open("launcher", 0);
  ASSERT_FALSE(none) << "there is such a file, and it is no session's";
  EXPECT_EQ(none.error().code, Code::not_found);
  EXPECT_EQ(logs.open(ids[0], -1).error().code, Code::invalid_argument);
  EXPECT_EQ(logs.open(ids[0], 0).error().sys, ENOENT) << "known, and not there";
}

}  // namespace
}  // namespace caisson::session
