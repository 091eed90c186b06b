// The way out that a policy gives: nothing unless it says so with a reason, one list for a workspace, never more by a request.
#include "launcher/compiler/egress.h"

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/stages.h"
#include "launcher/compiler/summary.h"
#include "launcher/egress/list/list.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

using egress::Verdict;

constexpr const char* kOut = R"("network": "allowlist", "weaken": [{"field": "/network", "why": "packages are fetched"}])";

std::string out_with(const std::string& rules) { return std::string(kOut) + ", \"egress\": " + rules; }

egress::List list_of_policy(const Policy& policy) {
  const auto list = egress::read_list(policy.egress);
  if (!list) ADD_FAILURE() << "no list";
  return list ? *list : egress::List{};
}
bool allows(const Policy& policy, std::string_view host, std::uint16_t port = 443) {
  return decide(list_of_policy(policy), *egress::read_host(host), port).kind == Verdict::Kind::allow;
}

TEST(Egress, NothingUnlessAPolicySaysSo) {
  Directory dir;
  EXPECT_EQ(dir.policy()->egress, "");
  EXPECT_FALSE(dir.policy()->files.contains(kResolverFile));
  const json::Value json = to_json(*dir.policy());
  EXPECT_FALSE(json.contains("egress") || json.contains("egress_limits"));
}

TEST(Egress, RulesBecomeAList) {
  Directory dir;
  EXPECT_EQ(dir.with(out_with(R"([
    {"host": "packages.example.org", "why": "packages"},
    {"host": "*.example.org", "ports": [443, "8000-8010"], "private": true, "sni": "optional", "why": "our own hosts"},
    {"host": "10.1.0.0/16", "ports": [5432], "why": "the databases"},
    {"host": "mirror.example.com", "ports": [80], "methods": "read", "why": "a mirror"},
    {"host": "bad.example.org", "deny": true, "why": "not this one"}])") +
                     R"(, "egress_limits": {"connections": 7, "bytes_per_second": 4096})"),
            Texts{});
  const auto policy = dir.policy();
  const egress::List list = list_of_policy(*policy);
  ASSERT_EQ(list.rules.size(), 5U);
  EXPECT_TRUE(allows(*policy, "packages.example.org") && allows(*policy, "a.example.org", 8005) &&
              allows(*policy, "10.1.2.3", 5432));
  EXPECT_FALSE(allows(*policy, "bad.example.org") || allows(*policy, "10.1.2.3") || allows(*policy, "other.org"));
  EXPECT_TRUE(list.rules[1].private_ && list.rules[1].sni == egress::Sni::optional);
  EXPECT_TRUE(list.rules[0].sni == egress::Sni::required && list.rules[2].sni == egress::Sni::optional);
  EXPECT_TRUE(list.rules[3].read_only);
  EXPECT_EQ(list.rules[0].why, "packages");
  EXPECT_TRUE(list.limits.connections == 7 && list.limits.bytes_per_second == 4096 && list.limits.idle_seconds == 300);
  EXPECT_EQ(policy->files.at(kResolverFile), "nameserver 127.0.0.53\noptions ndots:1\n");
  EXPECT_EQ(policy->weaken.at("/network"), "packages are fetched");
}

TEST(Egress, CanonicalJsonIsReadAsTheSameList) {
  Directory dir;
  ASSERT_EQ(dir.with(out_with(R"([
    {"host": "*.example.org", "ports": [443, "8000-8010"], "private": true, "sni": "optional", "why": "our own hosts"},
    {"host": "10.1.0.0/16", "ports": [5432], "sni": "required", "why": "the databases"},
    {"host": "2001:db9::/32", "deny": true, "alarm": true, "why": "not there"},
    {"host": "9.9.9.9", "ports": [853], "methods": "read", "why": "a resolver"}])")),
            Texts{});
  const auto policy = dir.policy();
  const json::Value json = to_json(*policy);
  EXPECT_EQ(compile_egress(with_defaults(json), policy->network), policy->egress);
  EXPECT_EQ(to_json(*policy)["egress_limits"]["connections"], 512);
}

TEST(Egress, AWiderNetworkNeedsAReason) {
  Directory dir;
  for (const char* network : {"allowlist", "monitor", "open"}) {
    const std::string field = std::string(R"("network": ")") + network + "\"";
    EXPECT_EQ(
        dir.with(field),
        Texts{"d.json:2 /network: gives more than base: \"" + std::string(network) +
              R"(" instead of "loopback"; if this is intended, give a reason in weaken: {"field": "/network", "why": "…"})"});
    EXPECT_EQ(dir.with(field + R"(, "weaken": [{"field": "/network", "why": "for the tests"}])"), Texts{});
    EXPECT_EQ(allows(*dir.policy(), "any.org", 12345), network != std::string("allowlist"));
  }
  dir.write("d.json", R"({"extends": "base"})");
  dir.write("base.json", R"({"network": "open", "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.problems().size(), 1U);
}

TEST(Egress, MoreThanAParentWithAWayOutAllowsNeedsAReason) {
  Directory dir;
  dir.write("base.json", std::string("{") + kOut + R"(, "syscalls": {"allow": ["io"]},
    "egress": [{"host": "a.org", "why": "everybody's"}, {"host": "b.org", "why": "everybody's"},
               {"host": "c.org", "deny": true, "why": "nobody's"}]})");
  EXPECT_EQ(dir.with(R"("egress": [{"host": "a.org", "why": "mine, in other words"}])"), Texts{});
  EXPECT_TRUE(allows(*dir.policy(), "a.org"));
  EXPECT_FALSE(allows(*dir.policy(), "b.org"));
  EXPECT_EQ(list_of_policy(*dir.policy()).rules.size(), 2U) << "what is denied stays denied";
  const Texts more = dir.with(R"("egress": [{"host": "a.org", "ports": [22], "why": "one more port"}])");
  ASSERT_EQ(more.size(), 1U);
  EXPECT_TRUE(more[0].starts_with("d.json:2 /egress: gives more than base")) << more[0];
  EXPECT_EQ(
      dir.with(
          R"("egress": [{"host": "d.org", "why": "one more host"}], "weaken": [{"field": "/egress", "why": "for the tests"}])"),
      Texts{});
  EXPECT_EQ(dir.with(R"("egress_limits": {"connections": 513})").size(), 1U);
  EXPECT_EQ(dir.with(R"("egress_limits": {"connections": 511})"), Texts{});
  EXPECT_EQ(dir.with(R"("network": "monitor")").size(), 1U);
}

TEST(Egress, MistakesAreToldWithWhatIsMeant) {
  Directory dir;
  const auto problem = [&dir](const std::string& rule) {
    const Texts found = dir.with(out_with("[" + rule + "]"));
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " problems";
  };
  const auto host = [&](const std::string& text) {
    return problem(R"({"host": ")" + text + R"(", "ports": [1], "why": "for the tests"})");
  };
  const std::string at = "d.json:2 /egress/0/host: ";
  EXPECT_EQ(host("Example.org."), at + "'Example.org.' is not canonical; meant 'example.org'?");
  EXPECT_EQ(host("*.Example.org"), at + "'*.Example.org' is not canonical; meant '*.example.org'?");
  EXPECT_EQ(host("0x7f.1"), at + "'0x7f.1' is not canonical; meant '127.0.0.1'?");
  EXPECT_EQ(host("https://a.org/x"),
            at + "'https://a.org/x' is a URL: a rule names a host, and its ports in 'ports'; meant 'a.org'?");
  EXPECT_EQ(host("a.org:443"), at + "'a.org:443' names a port: ports stand in 'ports'; meant 'a.org'?");
  EXPECT_EQ(host("*"), at + "'*' is every host: that is what \"network\": \"monitor\" or \"open\" is for");
  EXPECT_EQ(host("a.*.org"), at + "'a.*.org' has a '*' that is not in front of a whole name, such as \"*.example.org\"");
  EXPECT_EQ(host("*a.org"), at + "'*a.org' has a '*' that is not in front of a whole name, such as \"*.example.org\"");
  EXPECT_EQ(host("*.10.0.0.1"), at + "'*.10.0.0.1' is no name below which others could be");
  EXPECT_EQ(host("a b"), at + "'a b' is neither a name nor an address");
  EXPECT_TRUE(host("b\u00fccher.example").ends_with("has letters that are written as xn--... in names"));
  EXPECT_EQ(host("10.1.2.3/16"), at + "'10.1.2.3/16' is not canonical; meant '10.1.0.0/16'?");
  EXPECT_EQ(host("10.0.0.0/33"), at + "'10.0.0.0/33' is no block of addresses, such as \"10.1.0.0/16\"");
  EXPECT_EQ(host("a.org/8"), at + "'a.org/8' is no block of addresses, such as \"10.1.0.0/16\"");
  EXPECT_EQ(host("::ffff:10.0.0.1"), at + "'::ffff:10.0.0.1' is not canonical; meant '10.0.0.1'?");
  EXPECT_EQ(host("127.0.0.1"), at + "leads to no place that can be reached: loopback");
  EXPECT_EQ(host("169.254.0.0/16"), at + "leads to no place that can be reached: link_local");
  EXPECT_EQ(host("169.254.169.254"), "0 problems");  // the one address, by its name
  EXPECT_EQ(host("0.0.0.0/0"), "0 problems");
  EXPECT_EQ(problem(R"({"host": "10.0.0.1", "why": "for the tests"})"), at + "is an address: such a rule needs 'ports'");
  EXPECT_EQ(problem(R"({"host": "10.0.0.1", "ports": [1], "private": true, "why": "for the tests"})"),
            "d.json:2 /egress/0/private: goes with names: a rule of addresses permits those that it names");
  EXPECT_EQ(problem(R"({"host": "a.org", "deny": true, "sni": "optional", "why": "for the tests"})"),
            "d.json:2 /egress/0/sni: goes with rules that allow: this one denies");
  EXPECT_EQ(
      problem(R"({"host": "a.org", "methods": "read", "why": "for the tests"})"),
      "d.json:2 /egress/0/methods: \"read\" holds for plain HTTP, and port 443 carries TLS: say \"ports\": [80], or open it by "
      "\"inspect\": true");
  EXPECT_EQ(problem(R"({"host": "a.org", "why": "two\nlines, no"})"),
            "d.json:2 /egress/0/why: has a control character: a reason is one line");
  EXPECT_EQ(problem(R"({"host": "a.org", "alarm": true, "why": "for the tests"})"),
            "d.json:2 /egress/0/alarm: goes with rules that deny: this one allows");
  EXPECT_EQ(problem(R"({"host": "a.org"})"), "d.json:2 /egress/0: field 'why' is missing");
  EXPECT_EQ(problem(R"({"hosts": "a.org", "why": "for the tests"})"), "2 problems");
  EXPECT_EQ(
      problem(R"({"host": "a.org", "why": "for the tests"}, {"host": "a.org", "ports": ["400-500"], "why": "for the tests"})"),
      "d.json:2 /egress/1/host: names 'a.org' and a port of it again, after /egress/0");
  EXPECT_EQ(problem(R"({"host": "a.org", "why": "for the tests"}, {"host": "a.org", "ports": [22], "why": "for the tests"})"),
            "0 problems");
  for (const char* port : {"0", "65536", "-1", "\"443\"", "\"5-4\"", "\"0-4\"", "\"4-4\"", "\"1-65536\"", "\"-\"", "\"1-2x\"",
                           "null", "[443]", "1.5"})
    EXPECT_EQ(problem(R"({"host": "a.org", "why": "for the tests", "ports": [)" + std::string(port) + "]}"),
              "d.json:2 /egress/0/ports/0: must be a port (443) or a range of them (\"8000-8010\"), from 1 to 65535")
        << port;
}

TEST(Egress, TlsThatIsOpenedIsPartOfTheList) {
  Directory dir;
  ASSERT_EQ(dir.with(out_with(R"([
    {"host": "api.example.org", "inspect": true, "methods": "read", "paths": ["/repos/acme", "/user/"], "why": "what is read"},
    {"host": "*.example.org", "ports": [8443], "inspect": true, "why": "our own hosts"},
    {"host": "files.example.com", "ports": [80], "paths": ["/pub"], "why": "plain files"},
    {"host": "plain.example.com", "inspect": false, "why": "not looked into"}])")),
            Texts{});
  const auto policy = dir.policy();
  const egress::List list = list_of_policy(*policy);
  EXPECT_TRUE(list.rules[0].inspect && list.rules[0].read_only && list.rules[1].inspect);
  EXPECT_FALSE(list.rules[2].inspect || list.rules[3].inspect);
  EXPECT_EQ(list.rules[0].paths, (std::vector<std::string>{"/repos/acme", "/user/"}));
  const json::Value json = to_json(*policy);
  EXPECT_EQ(json["egress"][0]["paths"], json::Value({"/repos/acme", "/user/"}));
  const std::string text = explain_text(*policy);
  for (const char* said : {"GET, HEAD and OPTIONS only; TLS is opened there; at and below /repos/acme, /user/  # what is read",
                           "allowed at 80; at and below /pub  # plain files"})
    EXPECT_TRUE(text.contains(said)) << said << "\n" << text;
  // Its sessions believe the opener, as those that use a secret.
  EXPECT_TRUE(list.trust.ends_with("/trust/opened"));
  ASSERT_EQ(dir.with(out_with(R"([{"host": "a.org", "ports": [80], "paths": ["/x"], "why": "for the tests"}])")), Texts{});
  EXPECT_EQ(list_of_policy(*dir.policy()).trust, "");
}

TEST(Egress, WhatNobodyCouldLookIntoIsAMistake) {
  Directory dir;
  const auto problem = [&dir](const std::string& members) {
    const Texts found = dir.with(out_with("[{" + members + R"(, "why": "for the tests"}])"));
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " problems";
  };
  const std::string at = "d.json:2 /egress/0/";
  const std::string unseen =
      "paths: hold where requests are seen, and nobody sees them in TLS: say \"ports\": [80], or open it by \"inspect\": true";
  EXPECT_EQ(problem(R"("host": "a.org", "paths": ["/x"])"), at + unseen);
  EXPECT_EQ(problem(R"("host": "a.org", "ports": ["79-80"], "paths": ["/x"])"), at + unseen);
  EXPECT_EQ(problem(R"("host": "a.org", "ports": [8080], "inspect": false, "paths": ["/x"])"), at + unseen);
  EXPECT_EQ(problem(R"("host": "a.org", "ports": [80], "inspect": true)"),
            at + "inspect: opens TLS, and port 80 carries plain HTTP, whose requests are seen anyway");
  EXPECT_EQ(problem(R"("host": "a.org", "sni": "optional", "inspect": true)"),
            at + "inspect: needs the name that a TLS client asks for, and \"sni\": \"optional\" goes without one");
  EXPECT_EQ(problem(R"("host": "10.0.0.1", "ports": [443], "inspect": true)"),
            at + "inspect: goes with names: this rule names addresses");
  EXPECT_EQ(problem(R"("host": "10.0.0.1", "ports": [80], "paths": ["/x"])"),
            at + "paths: goes with names: this rule names addresses");
  EXPECT_EQ(problem(R"("host": "a.org", "deny": true, "inspect": true)"),
            at + "inspect: goes with rules that allow: this one denies");
  EXPECT_EQ(problem(R"("host": "a.org", "deny": true, "paths": ["/x"])"),
            at + "paths: goes with rules that allow: this one denies");
  const auto path = [&](const std::string& text) {
    return problem(R"("host": "a.org", "inspect": true, "paths": [")" + text + "\"]");
  };
  EXPECT_EQ(path("/api/"), "0 problems");
  EXPECT_EQ(path("api"), at + "paths/0: 'api' is no plain path that begins with '/'");
  EXPECT_EQ(path("/a/../b"), at + "paths/0: '/a/../b' is no plain path that begins with '/'");
  EXPECT_EQ(path("/repos/acme/*"),
            at + "paths/0: '/repos/acme/*' has a '*': a path permits what is below it, too; meant '/repos/acme/'?");
  EXPECT_TRUE(problem(R"("host": "a.org", "inspect": true, "paths": [])").contains("has 0 elements"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += (i > 0 ? "\", \"/" : "/") + std::to_string(i);
  EXPECT_TRUE(path(many).contains("has 17 elements"));
  // Not into a store that the policy itself shows.
  const Texts found = dir.with(R"("network": "allowlist", "egress": [{"host": "a.org", "inspect": true, "why": "for the tests"}],
    "grants": [{"path": "/etc/ssl/certs", "source": "/srv/certs"}], "weaken": [{"field": "/network", "why": "for the tests"},
    {"field": "/grants/etc/ssl/certs", "why": "for the tests"}])");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains("/egress: opens TLS by \"inspect\", which needs '/etc/ssl/certs'")) << found[0];
}

TEST(Egress, NoMoreNamesAreOpenedThanACertificateNames) {
  Directory dir;
  const auto rules = [](int count) {
    std::string out = "[";
    for (int i = 0; i < count; ++i)
      out += (i > 0 ? "," : "") + (R"({"host": "h)" + std::to_string(100 + i) + "." + std::string(60, 'x') + "." +
                                   std::string(60, 'y') + R"(.org", "inspect": true, "why": "for the tests"})");
    return out + "]";
  };
  EXPECT_EQ(dir.with(out_with(rules(58))), Texts{});  // of 138 bytes each
  const Texts found = dir.with(out_with(rules(60)));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains("/egress: opens TLS at too many names for one certificate: 8192 bytes")) << found[0];
}

struct Limits : testing::Test {
  // Whether a domain with `child` needs a reason, where it extends one with `parent`.
  bool more(const std::string& parent, const std::string& child) {
    dir.write("base.json", std::string("{") + kOut + R"(, "syscalls": {"allow": ["io"]}, "egress": [)" + parent + "]}");
    const Texts found = dir.with(R"("egress": [)" + child + "]");
    for (const std::string& text : found) EXPECT_TRUE(text.contains("/egress: gives more than base")) << text;
    return !found.empty();
  }
  static std::string rule(const std::string& members, const std::string& host = "a.org") {
    return R"({"host": ")" + host + "\", " + members + R"("why": "for the tests"})";
  }
  Directory dir;
};

TEST_F(Limits, FewerPathsAreNarrowerAndMoreNeedAReason) {
  const std::string seen = rule(R"("inspect": true, )"), at = rule(R"("inspect": true, "paths": ["/api", "/user"], )");
  EXPECT_FALSE(more(at, at) || more(seen, at) || more(rule(""), at) || more(rule(""), seen));
  EXPECT_FALSE(more(at, rule(R"("inspect": true, "paths": ["/api"], )")));
  EXPECT_FALSE(more(at, rule(R"("inspect": true, "paths": ["/api/v1", "/user"], )")));
  EXPECT_TRUE(more(at, seen)) << "at any path";
  EXPECT_TRUE(more(seen, rule(""))) << "without a look into it";
  EXPECT_TRUE(more(at, rule(R"("inspect": true, "paths": ["/api", "/other"], )")));
  EXPECT_TRUE(more(at, rule(R"("inspect": true, "paths": ["/"], )")));
  EXPECT_TRUE(more(at, rule(R"("inspect": true, "paths": ["/api"], "ports": [443], )"))) << "in other words";
}

TEST_F(Limits, ALimitIsNotLostToALessExactRule) {
  const std::string below = rule("", "*.a.org"), at = rule(R"("inspect": true, "paths": ["/api"], )", "b.a.org");
  EXPECT_FALSE(more(below + "," + at, below + "," + at));
  EXPECT_TRUE(more(below + "," + at, below)) << "which permits any path of b.a.org";
  EXPECT_FALSE(more(below + "," + at, at));
  EXPECT_FALSE(more(below + "," + at, below + "," + rule(R"("inspect": true, "paths": ["/api/v1"], )", "b.a.org")));
  const std::string read = rule(R"("ports": [80], "methods": "read", )", "10.1.0.0/16"),
                    all = rule(R"("ports": [80], )", "10.0.0.0/8");
  EXPECT_TRUE(more(all + "," + read, all));
}

TEST(Egress, AllowingWithoutAWayOutIsAMistake) {
  Directory dir;
  const std::string rule = R"("egress": [{"host": "a.org", "why": "for the tests"}])";
  EXPECT_EQ(dir.with(rule),
            Texts{"d.json:2 /egress: permits nothing, because network is loopback: say \"network\": \"allowlist\", or leave the "
                  "rules that allow to the files that have it"});
  EXPECT_EQ(dir.with(R"("egress": [{"host": "a.org", "deny": true, "why": "for the tests"}])"), Texts{});
  dir.write("base.json", R"({"syscalls": {"allow": ["io"]}, )" + rule + "}");  // for the domains that have a way out
  EXPECT_EQ(dir.with("\"network\": \"loopback\""), Texts{});
  EXPECT_EQ(dir.policy()->egress, "");
  EXPECT_EQ(dir.with(kOut), Texts{});
  EXPECT_TRUE(allows(*dir.policy(), "a.org"));
}

TEST(Egress, EachDomainHasItsOwn) {
  Directory dir;
  const std::string head = std::string("{\"extends\": \"base\", ") + kOut;
  dir.write("d.json", head + R"(, "egress": [{"host": "a.org", "why": "for the tests"}]})");
  dir.write("e.json", head + R"(, "egress": [{"host": "b.org", "why": "for the tests"}]})");
  dir.write("f.json", R"({"extends": "base", "network": "none"})");
  dir.write("g.json", R"({"extends": "base", "network": "monitor", "weaken": [{"field": "/network", "why": "for the tests"}]})");
  EXPECT_EQ(dir.problems(), Texts{});
}

TEST(Egress, ListsAreBounded) {
  Directory dir;
  const auto rules = [](int count, const std::string& why, const std::string& more) {
    std::string out = "[";
    for (int i = 0; i < count; ++i)
      out += (i > 0 ? "," : "") + (R"({"host": "h)" + std::to_string(i) + ".org\"" + more + R"(, "why": ")" + why + "\"}");
    return out + "]";
  };
  EXPECT_EQ(dir.with(out_with(rules(1024, "a reason", ""))), Texts{});
  EXPECT_EQ(dir.with(out_with(rules(1025, "a reason", ""))).size(), 1U);
  dir.write("base.json", R"({"syscalls": {"allow": ["io"]}, "egress": )" + rules(1000, "a reason", R"(, "deny": true)") + "}");
  const Texts many = dir.with(out_with(R"([{"host": "a.org", "why": "for the tests"}])"));
  EXPECT_EQ(many, Texts{}) << "1001 rules";
  dir.write("base.json",
            R"({"syscalls": {"allow": ["io"]}, "egress": )" + rules(210, std::string(990, 'w'), R"(, "deny": true)") + "}");
  std::string mine = "[";
  for (int i = 0; i < 60; ++i)
    mine += (i > 0 ? "," : "") + (R"({"host": "m)" + std::to_string(i) + R"(.org", "why": ")" + std::string(990, 'w') + "\"}");
  const Texts large = dir.with(out_with(mine + "]"));
  ASSERT_EQ(large.size(), 1U);
  EXPECT_TRUE(large[0].starts_with("d.json:2 /egress: an egress list is too large: with those that deny")) << large[0];
}

TEST(Egress, TheResolverIsTheLaunchers) {
  Directory dir;
  EXPECT_EQ(dir.with(std::string(kOut) + R"(, "files": {"/etc/resolv.conf": "nameserver 9.9.9.9\n"})"),
            Texts{"d.json:2 /files/~1etc~1resolv.conf: is made by the launcher where the policy has a way out"});
  EXPECT_EQ(dir.with(std::string(kOut) +
                     R"(, "grants": [{"path": "/etc/resolv.conf"}], "weaken": [{"field": "/network", "why": "for the tests"},
                     {"field": "/grants/etc/resolv.conf", "why": "for the tests"}])")
                .size(),
            1U);
}

struct UnderPreset : testing::Test {
  std::shared_ptr<const Policy> with(const std::string& domain, const std::string& preset) {
    dir.write("d.json", R"({"extends": "base")" + domain + "}");
    std::filesystem::create_directories(dir.path() + "/presets");
    dir.write("presets/p.json", preset);
    auto loaded = load_directory(dir.path(), {.only = "d", .preset = "p"});
    for (const Problem& problem : loaded.problems) ADD_FAILURE() << problem.text();
    return loaded.problems.empty() ? loaded.policies.at("d") : std::make_shared<const Policy>();
  }
  const std::string rules = R"("egress": [{"host": "a.org", "why": "for the tests"}, {"host": "b.org", "why": "for the tests"}])";
  Directory dir;
};

TEST_F(UnderPreset, ItTakesTheWayOutAway) {
  EXPECT_EQ(with(", " + std::string(kOut) + ", " + rules, R"({"network": "none"})")->egress, "");
  EXPECT_FALSE(with(", " + std::string(kOut) + ", " + rules, R"({"network": "loopback"})")->files.contains(kResolverFile));
}

TEST_F(UnderPreset, ItLeavesWhatBothAllow) {
  const std::string preset = R"({"egress": [{"host": "b.org", "why": "of the preset"}, {"host": "c.org", "why": "of the preset"},
                                            {"host": "d.org", "deny": true, "why": "of the preset"}]})";
  const auto policy = with(", " + std::string(kOut) + ", " + rules, preset);
  EXPECT_FALSE(allows(*policy, "a.org") || allows(*policy, "c.org"));
  EXPECT_TRUE(allows(*policy, "b.org"));
  EXPECT_EQ(list_of_policy(*policy).rules.size(), 2U);
  EXPECT_EQ(with("", preset)->egress, "") << "a list alone opens nothing";
}

TEST_F(UnderPreset, ALimitHoldsWhereEveryHostIsPermitted) {
  const std::string limit = R"({"host": "a.org", "inspect": true, "methods": "read", "paths": ["/api"], "why": "for the tests"})";
  const std::string monitor = R"(, "network": "monitor", "weaken": [{"field": "/network", "why": "for the tests"}])";
  for (const auto& [domains, presets] : {std::pair(monitor, R"({"egress": [)" + limit + "]}"),
                                         {monitor + R"(, "egress": [)" + limit + "]", std::string(R"({"egress": []})")}}) {
    const egress::List both = list_of_policy(*with(domains, presets));
    const egress::Verdict verdict = decide(both, *egress::read_host("a.org"), 443);
    EXPECT_TRUE(verdict.inspect && verdict.read_only) << presets;
    EXPECT_EQ(decide(both, *egress::read_host("b.org"), 443).kind, Verdict::Kind::allow);
  }
}

TEST_F(UnderPreset, TheStricterLimitHolds) {
  const auto list = [](const std::string& rules) { return ", " + out_with("[" + rules + "]"); };
  const auto preset = [](const std::string& rules) { return R"({"egress": [)" + rules + "]}"; };
  const std::string any = R"({"host": "a.org", "why": "for the tests"})",
                    below = R"({"host": "*.a.org", "why": "for the tests"})";
  const std::string seen = R"({"host": "a.org", "inspect": true, "paths": ["/api"], "why": "for the tests"})";
  const std::string seen_below = R"({"host": "b.a.org", "inspect": true, "paths": ["/api"], "why": "for the tests"})";
  for (const auto& [domains, presets] : {std::pair(any, seen), {seen, any}}) {
    const egress::List both = list_of_policy(*with(list(domains), preset(presets)));
    ASSERT_EQ(both.rules.size(), 1U);
    EXPECT_TRUE(both.rules[0].inspect);
    EXPECT_EQ(both.rules[0].paths, std::vector<std::string>{"/api"});
  }
  for (const auto& [domains, presets] : {std::pair(below, below + "," + seen_below), {below + "," + seen_below, below}}) {
    const egress::List both = list_of_policy(*with(list(domains), preset(presets)));
    EXPECT_EQ(decide(both, *egress::read_host("c.a.org"), 443).kind, Verdict::Kind::allow);
    EXPECT_TRUE(decide(both, *egress::read_host("b.a.org"), 443).inspect);
  }
  const std::string more = R"({"host": "b.a.org", "private": true, "inspect": true, "why": "for the tests"})";
  const egress::List less = list_of_policy(*with(list(below + "," + more), preset(below)));
  EXPECT_NE(decide(less, *egress::read_host("b.a.org"), 443).kind, Verdict::Kind::allow)
      << "neither more than one says, nor unseen";
}

TEST_F(UnderPreset, AHostThatIsNoneIsAMistakeAlsoBesideALimit) {
  dir.write("base.json", std::string("{") + kOut + R"(, "syscalls": {"allow": ["io"]},
    "egress": [{"host": "b.a.org", "inspect": true, "why": "for the tests"}]})");
  dir.write("d.json", R"({"extends": "base"})");
  std::filesystem::create_directories(dir.path() + "/presets");
  dir.write("presets/p.json", R"({"egress": [{"host": "*.A.org", "why": "for the tests"}]})");
  const auto loaded = load_directory(dir.path(), {.only = "d", .preset = "p"});
  ASSERT_FALSE(loaded.problems.empty());
  EXPECT_TRUE(loaded.problems[0].text().contains("'*.A.org' is not canonical")) << loaded.problems[0].text();
}

TEST_F(UnderPreset, ItOpensAWayOutWithAReason) {
  const std::string preset = "{" + std::string(kOut) + R"(, "egress": [{"host": "c.org", "why": "of the preset"}]})";
  EXPECT_TRUE(allows(*with("", preset), "c.org"));
  EXPECT_EQ(with(R"(, "network": "none")", preset)->egress, "") << "not where the domain took the network away";
  EXPECT_FALSE(allows(*with(", " + std::string(kOut) + ", " + rules, preset), "c.org"))
      << "nor more than the domain's own way out";
}

struct Narrowed : testing::Test {
  Narrowed() { EXPECT_EQ(dir.with(out_with(R"([{"host": "a.org", "private": true, "why": "for the tests"}])")), Texts{}); }
  Directory dir;
};

TEST_F(Narrowed, ARequestTakesTheWayOutAwayAndNothingElseOfIt) {
  const auto policy = dir.policy();
  const auto by = parse_narrowing(*json::parse(R"({"network": "none"})"));
  ASSERT_TRUE(by);
  const auto less = narrow(policy, *by);
  ASSERT_TRUE(less) << less.error().text();
  EXPECT_EQ((*less)->egress, "");
  EXPECT_NE((*less)->digest, policy->digest);
  for (const char* asked :
       {R"({"egress": []})", R"({"network": "open"})", R"({"network": "loopback"})", R"({"egress_limits": {"connections": 1}})"})
    EXPECT_FALSE(parse_narrowing(*json::parse(asked))) << asked;
}

TEST(Egress, PatternsOfAProxyAreBoundedByTheirBytes) {
  Directory dir;
  const auto problems = [&dir](std::size_t count) {
    std::string patterns;
    for (std::size_t i = 0; i < count; ++i)
      patterns += (i == 0 ? "\"" : ", \"") + std::string(62, static_cast<char>('a' + i % 26)) + (i < 26 ? "0" : "1") + "." +
                  std::string(63, 'x') + "." + std::string(63, 'y') + "\"";
    return dir.with(out_with(
        R"([{"host": "a.org", "why": "for the tests"}], "upstream": {"server": "proxy.org:80", "exclude": [)" + patterns + "]}"));
  };
  EXPECT_EQ(problems(30), Texts{});
  const Texts told = problems(31);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].contains("/upstream/exclude: may have 6144 bytes together")) << told[0];
}

TEST_F(Narrowed, ItComesBackFromBytes) {
  LoadResult loaded;
  loaded.policies["d"] = dir.policy();
  const auto back = thaw(freeze(loaded));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->policies.at("d")->egress, dir.policy()->egress);
  EXPECT_EQ(digest_of(*back->policies.at("d")), dir.policy()->digest);
}

TEST_F(Narrowed, IsInTheDigestAndInExplain) {
  const auto policy = dir.policy();
  ASSERT_EQ(dir.with(out_with(R"([{"host": "b.org", "private": true, "why": "for the tests"}])")), Texts{});
  EXPECT_NE(dir.policy()->digest, policy->digest);
  const json::Value e = explain(*policy);
  EXPECT_EQ(e["egress"]["value"][0]["host"], "a.org");
  EXPECT_EQ(e["egress_limits"]["connections"], 512);
  const std::string text = explain_text(*policy);
  for (const char* said :
       {"loopback of its workspace, and what is allowed here", "allowed at 80, 443; may be private  # for the tests",
        "connections ", "no limit", "what `egress` allows, by the door", "a way out to what its list names",
        "1 names that may lead to private"})
    EXPECT_TRUE(text.contains(said)) << said << "\n" << text;
  EXPECT_FALSE(explain(*Directory().policy()).contains("egress"));
}

}  // namespace
}  // namespace caisson::policy
