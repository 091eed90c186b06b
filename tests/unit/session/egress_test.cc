// The launcher's side of caisson-gate, with the real programs and a user namespace for a workspace.
#include "launcher/pid1/session/egress.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/user_ns.h"
#include "launcher/egress/list/list.h"
#include "tests/unit/session/tables.h"

namespace caisson::session {
namespace {

Fd user_namespace() {
  auto made = sys::pipe().value(), mapped = sys::pipe().value();
  const pid_t pid = ::fork();
  if (pid == 0) {
    mapped.second.reset();  // or its end is never seen
    char byte = 0;
    ::_exit(::unshare(CLONE_NEWUSER) == 0 && ::write(made.second.get(), "x", 1) == 1 ? int(::read(mapped.first.get(), &byte, 1))
                                                                                     : 1);
  }
  made.second.reset();
  char byte = 0;
  Fd out;
  if (::read(made.first.get(), &byte, 1) == 1 && confine::write_id_maps(pid, 20001, 20001))
    out = sys::open("/proc/" + std::to_string(pid) + "/ns/user", O_RDONLY).value_or(Fd());
  mapped.second.reset();
  sys::reap(pid);
  return out;
}

ino_t inode(const Fd& fd) {
  struct stat st{};
  return ::fstat(fd.get(), &st) == 0 ? st.st_ino : 0;
}

struct EgressTest : testing::Test {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    workspace.name = "one";
    workspace.place.user_ns = user_namespace();
    if (!workspace.place.user_ns) GTEST_SKIP() << "there are no user namespaces here";
  }
  Status open() {
    Task<Status> task = egress.open(workspace, list);
    EXPECT_TRUE(tables.loop->run([&task] { return task.done(); }));
    return task.take();
  }
  bool until(const std::function<bool()>& fact) {
    const std::int64_t end = sys::monotonic_us() + 20'000'000;
    const auto tick = [&](auto& self) -> void { tables.loop->after(10'000, [&self] { self(self); }); };
    tick(tick);
    EXPECT_TRUE(tables.loop->run([&] { return fact() || sys::monotonic_us() > end; }));
    return fact();
  }
  [[nodiscard]] std::size_t started() const { return tables.records("egress_start"); }
  // Of the gate that was started last.
  [[nodiscard]] pid_t gate() const {
    const std::string text = tables.dir.read("launcher");
    const auto at = text.rfind("\"process\":\"gate\"");
    const auto pid = text.rfind("\"pid\":", at);
    return at == std::string::npos || pid == std::string::npos ? 0 : std::atoi(text.c_str() + pid + 6);
  }

  Tables tables{Tier::t3};
  Workspace workspace{*tables.loop};
  Egress& egress = *tables.host.egress;
  static std::string joined(const egress::List& one) {
    const std::string bytes = egress::list_bytes(one);
    return "bash\n" + std::to_string(bytes.size()) + '\n' + bytes;
  }
  const std::string list = joined({});
};

TEST_F(EgressTest, AWorkspaceGetsASecondNetworkNamespace) {
  const Status done = open();
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(workspace.place.out_ns);
  EXPECT_EQ(started(), 4U) << "gate, door, dialer, and the workspace's way";
  const ino_t made = inode(workspace.place.out_ns);
  EXPECT_TRUE(open());
  EXPECT_EQ(inode(workspace.place.out_ns), made) << "once";
  EXPECT_EQ(started(), 4U);
}

TEST_F(EgressTest, AGateThatEndsIsStartedAgainAndToldAll) {
  ASSERT_TRUE(open());
  const pid_t first = gate();
  const ino_t made = inode(workspace.place.out_ns);
  ASSERT_GT(first, 0);
  ::kill(first, SIGKILL);
  EXPECT_TRUE(until([this] { return started() == 8; })) << started();
  EXPECT_EQ(tables.records("egress_exit"), 1U);
  EXPECT_NE(gate(), first);
  EXPECT_EQ(inode(workspace.place.out_ns), made) << "sessions are in it";
}

TEST_F(EgressTest, WithoutAPolicyThatGoesOutTheWayIsClosed) {
  ASSERT_TRUE(open());
  egress.renew(list);
  EXPECT_TRUE(workspace.place.out_ns);
  egress.renew("");
  EXPECT_FALSE(workspace.place.out_ns);
  EXPECT_TRUE(open()) << "and is made again when one does";
  EXPECT_TRUE(workspace.place.out_ns);
  EXPECT_EQ(tables.records("egress_exit"), 0U);
}

TEST_F(EgressTest, ANewerListIsTaken) {
  ASSERT_TRUE(open());
  egress::List other;
  other.mode = egress::Mode::monitor;
  const std::string newer = joined(other);
  egress.renew(newer);
  tables.turn();
  EXPECT_EQ(tables.records("egress_exit"), 0U);
}

TEST_F(EgressTest, WhatIsNoUserNamespaceIsAnErrorThatNamesTheStep) {
  workspace.place.user_ns = sys::open("/proc/self/ns/uts", O_RDONLY).value();
  const Status done = open();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::unavailable);
  EXPECT_EQ(done.error().what, "the way out: step user_ns: EINVAL");
  EXPECT_FALSE(workspace.place.out_ns);
}

}  // namespace
}  // namespace caisson::session
