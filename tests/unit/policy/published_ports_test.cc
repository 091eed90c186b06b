// The ports that a policy opens to clients without a credential: none unless it says so, with a reason; never more by a request.
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/summary.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

constexpr const char* kWhy = R"("weaken": [{"field": "/published_ports", "why": "a public demonstration"}],)";
constexpr const char* kAsk = R"(; if this is intended, give a reason in weaken: {"field": "/published_ports", "why": "…"})";
using Ports = std::set<std::uint16_t>;

TEST(PublishedPorts, NoneUnlessAPolicySaysSo) { EXPECT_EQ(Directory().policy()->published_ports, Ports{}); }

TEST(PublishedPorts, AreTakenWithTheirReason) {
  Directory dir;
  EXPECT_EQ(dir.with(std::string(kWhy) + "\"published_ports\": [65535, 1, 3000]"), Texts{});
  EXPECT_EQ(dir.policy()->published_ports, (Ports{1, 3000, 65535}));
  EXPECT_EQ(dir.policy()->weaken.at("/published_ports"), "a public demonstration");
}

TEST(PublishedPorts, NeedAReasonInADomainAndInBase) {
  Directory dir;
  EXPECT_EQ(dir.with("\"published_ports\": [3000]"),
            Texts{"d.json:2 /published_ports: gives more than base: [3000] instead of []" + std::string(kAsk)});
  dir.write("d.json", R"({"extends": "base"})");
  dir.write("base.json", R"({"published_ports": [3000], "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.problems(),
            Texts{"base.json:1 /published_ports: gives more than base: [3000] instead of []" + std::string(kAsk)});
}

TEST(PublishedPorts, ADomainTakesAwayWithoutCeremonyAndAddsOnlyWithAReason) {
  Directory dir;
  dir.write("base.json", std::string("{") + kWhy + R"("published_ports": [3000, 4000], "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.with("\"published_ports\": [4000]"), Texts{});
  EXPECT_EQ(dir.policy()->published_ports, Ports{4000});
  EXPECT_EQ(dir.with("\"published_ports\": [4000, 5000]").size(), 1U);
}

TEST(PublishedPorts, OnlyNumbersOfPortsEachOnce) {
  Directory dir;
  const auto what = [&dir](const std::string& ports) {
    const Texts found = dir.with(kWhy + ("\"published_ports\": " + ports));
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " problems";
  };
  const std::string no_port = ": must be a port: a whole number from 1 to 65535, without quotes";
  for (const char* wrong : {"0", "65536", "-1", "3000.0", "\"3000\"", "null", "[3000]", "18446744073709551617"})
    EXPECT_EQ(what("[" + std::string(wrong) + "]"), "d.json:2 /published_ports/0" + no_port) << wrong;
  EXPECT_EQ(what("[3000, 3000]"), "d.json:2 /published_ports/1: is listed twice: 3000");
  EXPECT_EQ(what("3000"), "d.json:2 /published_ports: must be a list");
  EXPECT_EQ(what("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"),
            "d.json:2 /published_ports: has 17 elements, must have from 0 to 16");
}

TEST(PublishedPorts, WhereNothingCanListenTheyAreAMistake) {
  Directory dir;
  EXPECT_EQ(dir.with(std::string(kWhy) + R"("published_ports": [3000], "network": "none")"),
            Texts{"d.json:2 /published_ports: opens ports at which nothing can listen, because network is none: say "
                  "\"published_ports\": []"});
}

struct UnderAPreset : testing::Test {
  Ports with(const std::string& preset) {
    std::filesystem::create_directory(dir.path() + "/presets");
    EXPECT_EQ(dir.with(std::string(kWhy) + "\"published_ports\": [3000, 4000]"), Texts{});
    dir.write("presets/p.json", preset);
    const auto loaded = load_directory(dir.path(), {"", "p"});
    for (const Problem& problem : loaded.problems) ADD_FAILURE() << problem.text();
    return loaded.problems.empty() ? loaded.policies.at("d")->published_ports : Ports{};
  }
  Directory dir;
};

TEST_F(UnderAPreset, TheyStayWhereItSaysNothing) { EXPECT_EQ(with("{}"), (Ports{3000, 4000})); }
TEST_F(UnderAPreset, ItClosesThem) { EXPECT_EQ(with(R"({"published_ports": []})"), Ports{}); }
TEST_F(UnderAPreset, WithoutANetworkThereAreNone) { EXPECT_EQ(with(R"({"network": "none"})"), Ports{}); }

TEST(PublishedPorts, NoRequestNamesThem) {
  for (const char* asked : {R"({"published_ports": [3000]})", R"({"published_ports": []})"}) {
    const auto refused = parse_narrowing(*json::parse(asked));
    ASSERT_FALSE(refused) << asked;
    EXPECT_TRUE(refused.error().text().contains("/published_ports: a request cannot narrow this field"))
        << refused.error().text();
  }
}

TEST(PublishedPorts, ComeBackFromBytesAndAreInTheDigest) {
  Policy policy = *Directory().policy();
  const std::string closed = digest_of(policy);
  policy.published_ports = {80, 3000};
  EXPECT_NE(digest_of(policy), closed);
  LoadResult loaded;
  loaded.policies["d"] = std::make_shared<const Policy>(policy);
  EXPECT_EQ(thaw(freeze(loaded))->policies.at("d")->published_ports, (Ports{80, 3000}));
}

TEST(PublishedPorts, ExplainAndScoreTellThem) {
  Directory dir;
  ASSERT_EQ(dir.with(std::string(kWhy) + "\"published_ports\": [3000, 80]"), Texts{});
  const auto open = dir.policy();
  EXPECT_TRUE(explain_text(*open).contains("at ports 80 3000  # a public demonstration"));
  EXPECT_TRUE(explain_text(*open).contains("OPEN WITHOUT A CREDENTIAL"));
  EXPECT_EQ(explain(*open)["published_ports"]["value"], (json::Value{80, 3000}));
  EXPECT_EQ(score(deductions(*open)), score(deductions(*Directory().policy())) - 6);  // of them, one for the entry in weaken
  const auto closed = Directory().policy();
  EXPECT_TRUE(explain_text(*closed).contains("at no port"));
  EXPECT_FALSE(explain_text(*closed).contains("OPEN WITHOUT A CREDENTIAL"));
  EXPECT_EQ(explain(*closed)["published_ports"]["value"], json::Value::array());
}

}  // namespace
}  // namespace caisson::policy
