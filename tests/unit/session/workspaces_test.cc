// Workspaces without namespaces or sessions of their own: who may be made, and when one ends.
#include "launcher/pid1/session/workspaces.h"

#include <unistd.h>

#include "tests/unit/session/tables.h"

namespace caisson::session {
namespace {

WorkspaceRequest named(const std::string& name) {
  WorkspaceRequest out;
  out.name = name;
  out.disk_bytes = 1 << 20;
  out.idle_seconds = 3600;
  return out;
}

struct WorkspacesTest : testing::Test {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "without root there are no others than the default one";
  }
  Result<json::Value> add(const WorkspaceRequest& request) { return workspaces.add(request, json::Value::object(), {}); }
  [[nodiscard]] bool there(const std::string& name) const { return workspaces.find({{"workspace", name}}).has_value(); }

  Tables tables{Tier::t3};
  Clients clients{tables.host, [](ipc::Connection&, const ipc::Connection::Request&) {}, [](std::uint64_t, ipc::Role) {}};
  Uids uids{tables.host};
  Workspace unused{*tables.loop};
  Domains domains{tables.host, uids, unused, [](const Workspace&, const std::string&) {}};
  Logs logs{tables.host, domains, [](const std::string&) { return false; }};
  Sessions sessions{tables.host, clients, domains, uids, logs, [](const std::string&) {}};
  Workspaces workspaces{tables.host, clients, sessions};
};

TEST_F(WorkspacesTest, OneEndsOnlyWhenNothingUsesIt) {
  ASSERT_TRUE(add(named("a")));
  Workspace& made = *workspaces.find({{"workspace", "a"}}).value();
  {
    const auto first = workspaces.use(made);
    {
      const auto second = workspaces.use(made);
      ASSERT_TRUE(workspaces.destroy(made, "destroyed", 1, 1));
      tables.turn();
    }
    tables.turn();
    EXPECT_FALSE(there("a")) << "nothing new is begun in it";
    EXPECT_EQ(workspaces.list().size(), 2U) << "a task is still in it";
    EXPECT_EQ(workspaces.list()[0]["state"], "ending");
    EXPECT_EQ(add(named("a")).error().code, Code::already_exists);
    EXPECT_EQ(tables.records("workspace_end"), 0U);
  }
  EXPECT_EQ(workspaces.list().size(), 2U) << "not from inside the task";
  tables.turn();
  EXPECT_EQ(workspaces.list().size(), 1U);
  EXPECT_EQ(tables.records("workspace_end"), 1U);
  EXPECT_TRUE(add(named("a")));
}

TEST_F(WorkspacesTest, OneThatNobodyUsesEndsWhenItsTimeIsOver) {
  WorkspaceRequest idle = named("a");
  idle.idle_seconds = 0;
  ASSERT_TRUE(add(idle));
  ASSERT_TRUE(add(named("b")));
  tables.turn();
  EXPECT_FALSE(there("a"));
  EXPECT_TRUE(there("b"));
}

TEST_F(WorkspacesTest, TheDefaultOneIsAlwaysThere) {
  EXPECT_EQ(workspaces.find(json::Value::object()).value(), &workspaces.main());
  EXPECT_EQ(workspaces.destroy(workspaces.main(), "destroyed", 1, 1).error().code, Code::permission_denied);
  workspaces.settle(kDefaultWorkspace);
  tables.turn();
  EXPECT_TRUE(there(kDefaultWorkspace));
  EXPECT_EQ(add(named(kDefaultWorkspace)).error().code, Code::already_exists);
}

TEST_F(WorkspacesTest, ThereAreNoneThatWouldNotBeKeptApart) {
  WorkspaceRequest kept = named("kept");
  kept.persistent = true;
  EXPECT_EQ(workspaces.admit(kept).error().code, Code::unavailable) << "no directory for homes";
  for (std::size_t i = 1; i < tables.host.settings.workspaces.most; ++i) ASSERT_TRUE(add(named("w" + std::to_string(i))));
  EXPECT_EQ(workspaces.admit(named("more")).error().code, Code::limit);
  tables.host.features.change_uid = {EPERM, "setresuid"};
  EXPECT_EQ(workspaces.admit(named("more")).error().code, Code::unavailable) << "one uid for all";
}

TEST_F(WorkspacesTest, APausedOneIsNotPausedTwice) {
  Workspace& main = workspaces.main();
  main.state = "paused";
  EXPECT_EQ(workspaces.pace(main, true, {}).value(), (json::Value{{"state", "paused"}}));
  main.state = "pausing";
  EXPECT_EQ(workspaces.pace(main, false, {}).error().code, Code::unavailable);
  EXPECT_EQ(runs(main).error().code, Code::unavailable);
}

}  // namespace
}  // namespace caisson::session
