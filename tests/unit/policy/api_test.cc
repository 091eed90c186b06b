// The areas of the API that a policy opens to programs in sessions: none unless it says so, with a reason; never more by a
// request.
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/narrow.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

const std::string kReason = R"("weaken": [{"field": "/api", "why": "agents drive their browser"}],)";
using Areas = std::vector<std::string>;

TEST(Api, NoneUnlessAPolicySaysSo) {
  Directory dir;
  EXPECT_EQ(dir.policy()->api, Areas{});
  EXPECT_FALSE(to_json(*dir.policy()).contains("api"));  // its digest is that of a policy from before there was such a field
  EXPECT_EQ(explain(*dir.policy()).at("api").at("value"), json::Value::array());
}

TEST(Api, NeedsAReasonInADomainAndInBase) {
  Directory dir;
  const std::string ask = R"(; if this is intended, give a reason in weaken: {"field": "/api", "why": "…"})";
  EXPECT_EQ(dir.with("\"api\": [\"bash\"]"), Texts{"d.json:2 /api: gives more than base: [\"bash\"] instead of []" + ask});
  EXPECT_EQ(dir.with(kReason + "\"api\": [\"bash\", \"mcp\"]"), Texts{});
  EXPECT_EQ(dir.policy()->api, (Areas{"bash", "mcp"}));
  dir.write("d.json", R"({"extends": "base"})");
  dir.write("base.json", R"({"api": ["bash"], "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.problems(), Texts{"base.json:1 /api: gives more than base: [\"bash\"] instead of []" + ask});
}

TEST(Api, OnlyAreasOfOneWorkspaceEachOnce) {
  Directory dir;
  for (const char* wrong : {"operator", "workspaces", "audit", "auth", "system", "proxy", "*", "bash:read", ""})
    EXPECT_EQ(dir.with(kReason + "\"api\": [\"" + wrong + "\"]").size(), 1U) << wrong;
  EXPECT_EQ(dir.with(kReason + R"("api": ["bash", "bash"])").size(), 1U);
}

TEST(Api, WhereNothingCanConnectItIsAMistake) {
  Directory dir;
  EXPECT_EQ(dir.with(kReason + R"("api": ["bash"], "network": "none")"),
            Texts{"d.json:2 /api: cannot be reached, because network is none: say \"api\": []"});
}

TEST(Api, NoRequestNamesIt) {
  const auto refused = parse_narrowing(*json::parse(R"({"api": []})"));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().text().contains("/api: a request cannot narrow this field")) << refused.error().text();
}

}  // namespace
}  // namespace caisson::policy
