// Secrets that a policy binds: sessions get placeholders and the file of certificates, and nobody gets the secret's file.
#include "launcher/compiler/secrets.h"

#include "launcher/common/egress/trust.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/narrow.h"
#include "launcher/egress/list/list.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

const std::string kTrust = "/run/caisson/trust/opened";
constexpr const char* kToken =
    R"({"name": "token", "host": "api.example.org", "file": "/etc/caisson/secrets/token", "env": "API_TOKEN",
        "why": "issues are read"})";

std::string out_with(const std::string& secrets, const std::string& more = "") {
  return R"("network": "allowlist", "weaken": [{"field": "/network", "why": "packages are fetched"}],
    "egress": [{"host": "api.example.org", "ports": [80, 443, 8444], "why": "what it is"},
               {"host": "*.example.com", "why": "packages"}], "secrets": [)" +
         secrets + "]" + more;
}
std::string token_with(const std::string& members) {
  json::Value token = json::Value::parse(kToken);
  token.update(json::Value::parse("{" + members + "}"));
  return json::dump(token);
}
std::string without_file(const std::string& members) {
  json::Value token = json::Value::parse(kToken);
  token.erase("file");
  token.update(json::Value::parse("{" + members + "}"));
  return json::dump(token);
}
std::vector<egress::Binding> bindings_of(const Policy& policy) {
  const auto list = egress::read_list(policy.egress);
  return list ? list->bindings : std::vector<egress::Binding>();
}

TEST(Secrets, AreBoundInTheListAndSessionsGetAPlaceholder) {
  Directory dir;
  ASSERT_EQ(dir.with(out_with(token_with(R"("methods": ["GET", "POST"], "path": "/repos", "field": "x-api-key", "port": 8444)"))),
            Texts{});
  const auto policy = dir.policy();
  const auto bindings = bindings_of(*policy);
  ASSERT_EQ(bindings.size(), 1U);
  const egress::Binding& one = bindings[0];
  EXPECT_TRUE(one.name == "token" && one.host == "api.example.org" && one.port == 8444 && one.path == "/repos");
  EXPECT_TRUE(one.methods.size() == 2 && one.field == "x-api-key" && one.file == "/etc/caisson/secrets/token");
  EXPECT_TRUE(one.placeholder.starts_with("caisson-placeholder-token-") && one.placeholder.size() == 50) << one.placeholder;
  EXPECT_EQ(policy->env.set.at("API_TOKEN"), one.placeholder);
  EXPECT_EQ(to_json(*policy)["secrets"][0]["file"], "/etc/caisson/secrets/token");
  EXPECT_TRUE(explain_text(*policy).contains("secret token")) << explain_text(*policy);
}

TEST(Secrets, SessionsBelieveTheOpener) {
  Directory dir;
  ASSERT_EQ(dir.with(out_with(kToken)), Texts{});
  const auto policy = dir.policy();
  const Grant* grant = ruling_grant(policy->grants, egress::kSystemAuthorities);
  ASSERT_NE(grant, nullptr);
  EXPECT_TRUE(grant->path == egress::kSystemStore && grant->source == kTrust && grant->access == Access::read && !grant->execute);
  for (const auto& [name, below] : egress::kTrustNames)
    EXPECT_EQ(policy->env.set.at(name), std::string(egress::kSystemStore) + below) << name;
  EXPECT_EQ(policy->links.at(egress::kChromiumLink), "/etc/ssl/certs/chromium.json");
  const auto usr = narrow(policy, {.grants = std::vector<Grant>{{.path = "/usr"}}});
  ASSERT_TRUE(usr.has_value());
  EXPECT_NE(ruling_grant((*usr)->grants, egress::kSystemAuthorities), nullptr);
  Policy in_place = *policy;
  trust_in_place(in_place);
  EXPECT_EQ(in_place.env.set.at("SSL_CERT_FILE"), kTrust + "/ca-certificates.crt");
  EXPECT_EQ(in_place.env.set.at("SSL_CERT_DIR"), kTrust);
  EXPECT_EQ(in_place.env.set.at("JAVA_TOOL_OPTIONS"), "-Djavax.net.ssl.trustStore=" + kTrust + "/java/cacerts");
}

// Each with the grants of the policy, and whether its own say about the system's store stays.
TEST(Secrets, WhatThePolicyItselfShowsAsAuthoritiesStays) {
  Directory dir;
  const std::pair<const char*, bool> rows[] = {
      {R"({"path": "/etc/ssl/certs"})", false},
      {R"({"path": "/etc/ssl/certs/ca-certificates.crt"})", false},
      {R"({"path": "/etc/ssl"})", false},
      {R"({"path": "/etc/ssl/certs", "source": "/opt/certs"})", true},
      {R"({"path": "/etc/ssl/certs/java", "source": "/opt/java"})", true},
  };
  for (const auto& [grant, own] : rows) {
    const std::string path = json::Value::parse(grant)["path"].get<std::string>();
    const std::string grants = R"(, "grants": [)" + std::string(grant) + "]";
    const std::string weaken = R"(, {"field": "/grants)" + path + R"(", "why": "what a test needs"}])";
    const auto with = [&](const std::string& secrets) {
      std::string text = out_with(secrets, grants);
      return text.replace(text.find("}],"), 2, "}" + weaken);
    };
    const Texts found = dir.with(with(kToken));
    if (own) EXPECT_TRUE(found.size() == 1 && found[0].contains("shows something else")) << grant;
    else EXPECT_EQ(found, Texts{}) << grant;
    ASSERT_EQ(dir.with(with("")), Texts{}) << grant;
    const auto loaded = load_directory(dir.path(), {.authorities = true});
    ASSERT_TRUE(loaded.problems.empty()) << grant;
    const Policy& policy = *loaded.policies.at("d");
    EXPECT_EQ(policy.env.set.contains("SSL_CERT_FILE"), !own) << grant;
    EXPECT_EQ(trust_of(policy), own ? "" : "/run/caisson/trust/system") << grant;
    const auto in_store = [](const Grant& g) { return inside(g.path, egress::kSystemStore); };
    EXPECT_EQ(std::ranges::count_if(policy.grants, in_store), 1) << grant;
  }
}

// Nothing may be mounted in a copy of the system, which has the system's store.
TEST(Secrets, BesideACopyOfTheSystemTheStoreIsApart) {
  Directory dir;
  dir.write("seccomp/system-packages.json",
            R"({"name": "system-packages", "why": "for the tests", "allow": [{"names": ["chown"]}]})");
  const char* const copy = R"(, "system_packages": true, "grants": [{"path": "/etc/ssl/certs"}])";
  std::string text = out_with(kToken, copy);
  text.replace(text.find("}],"), 2, R"(}, {"field": "/system_packages", "why": "what a test needs"},
    {"field": "/grants/etc/ssl/certs", "why": "what a test needs"}])");
  ASSERT_EQ(dir.with(text), Texts{});
  const auto policy = dir.policy();
  EXPECT_EQ(ruling_grant(policy->grants, egress::kSystemAuthorities)->source, egress::kSystemStore);
  EXPECT_EQ(ruling_grant(policy->grants, egress::kApart)->source, kTrust);
  EXPECT_EQ(policy->env.set.at("SSL_CERT_FILE"), std::string(egress::kApart) + "/ca-certificates.crt");
  EXPECT_EQ(policy->env.set.at("JAVA_TOOL_OPTIONS"), "-Djavax.net.ssl.trustStore=/caisson-authorities/java/cacerts");
}

TEST(Secrets, WithoutThemAndTheOperatorsAuthoritiesNothingIsDifferent) {
  Directory dir;
  ASSERT_EQ(dir.with(out_with("")), Texts{});
  const auto policy = dir.policy();
  EXPECT_FALSE(to_json(*policy).contains("secrets") || policy->env.set.contains("SSL_CERT_FILE"));
  EXPECT_EQ(ruling_grant(policy->grants, egress::kSystemAuthorities), nullptr);
}

TEST(Secrets, WhateverGoesOutBelievesTheOperatorsAuthorities) {
  Directory dir;
  dir.write("inside.json", R"({"extends": "base"})");
  ASSERT_EQ(dir.with(out_with("")), Texts{});
  const auto loaded = load_directory(dir.path(), {.run = "/run/other", .authorities = true});
  const Policy& out = *loaded.policies.at("d");
  EXPECT_EQ(trust_of(out), "/run/other/trust/system");
  EXPECT_EQ(ruling_grant(out.grants, egress::kSystemAuthorities)->source, "/run/other/trust/system");
  EXPECT_FALSE(to_json(out).contains("secrets"));
  const Policy& in = *loaded.policies.at("inside");
  EXPECT_FALSE(in.env.set.contains("SSL_CERT_FILE") || ruling_grant(in.grants, egress::kSystemAuthorities) != nullptr);
}

TEST(Secrets, AFileThatSomeSessionCouldReadIsRefused) {
  Directory dir;
  for (const char* file : {"/usr/share/token", "/data/token", "/home/gem/token", "/tmp/token", "/usr/lib/caisson/token"}) {
    const Texts found = dir.with(out_with(token_with(std::string(R"("file": ")") + file + "\"")));
    ASSERT_EQ(found.size(), 1U) << file;
    EXPECT_TRUE(found[0].contains("could read it")) << found[0];
  }
  dir.write("other.json", R"({"extends": "base", "grants": [{"path": "/etc/caisson/secrets"}],
    "weaken": [{"field": "/grants/etc/caisson/secrets", "why": "a mistake"}]})");
  const Texts found = dir.with(out_with(kToken));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains("domain 'other'") && found[0].starts_with("d.json")) << found[0];
}

TEST(Secrets, SoIsAHostThatTheRulesDoNotPermit) {
  Directory dir;
  for (const char* members : {R"("host": "other.org")", R"("port": 8443)"}) {
    const Texts found = dir.with(out_with(token_with(members)));
    ASSERT_EQ(found.size(), 1U) << members;
    EXPECT_TRUE(found[0].starts_with("d.json") && found[0].contains("is not permitted by 'egress'")) << found[0];
  }
  EXPECT_EQ(dir.with(out_with(token_with(R"("host": "a.example.com")"))), Texts{});
}

TEST(Secrets, MistakesAreTold) {
  Directory dir;
  const std::pair<std::string, const char*> rows[] = {
      {token_with(R"("host": "API.example.org")"), "canonical"},
      {token_with(R"("host": "10.1.2.3")"), "canonical"},
      {token_with(R"("port": 80)"), "plain HTTP"},
      {token_with(R"("path": "x")"), "path"},
      {token_with(R"("field": "host")"), "field"},
      {token_with(R"("methods": ["get"])"), "method"},
      {token_with(R"("name": "A b")"), "name"},
      {token_with(R"("env": "SSL_CERT_FILE")"), "authorities"},
      {token_with(R"("why": "one line\nand another")"), "one line"},
      {token_with(R"("file": "token")"), "file"},
      {token_with(R"("command": "print it")"), "a file and a command"},
      {token_with(R"("handed": true)"), "comes from one place"},
      {without_file(""), "comes from one place"},
      {without_file(R"("command": "a\nb")"), "one line"},
      {std::string(kToken) + "," + token_with(R"("env": "OTHER")"), "another secret's"},
      {std::string(kToken) + "," + token_with(R"("name": "other")"), "another secret's"},
  };
  for (const auto& [secrets, what] : rows) {
    const Texts found = dir.with(out_with(secrets));
    ASSERT_FALSE(found.empty()) << secrets;
    EXPECT_TRUE(found[0].contains("/secrets/") && found[0].contains(what)) << found[0];
  }
  EXPECT_EQ(dir.with(out_with(kToken, R"(, "env": {"set": {"API_TOKEN": "mine"}})")).size(), 1U);
  EXPECT_EQ(dir.with(std::string(R"("secrets": [)") + kToken + "]").size(), 1U) << "no way out";
}

TEST(Secrets, ACommandRunsInADomainOfItsOwn) {
  Directory dir;
  const std::string out = out_with(without_file(R"("command": "print-token --audience x", "refresh_seconds": 60)"));
  Texts found = dir.with(out);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].starts_with("credentials.json") && found[0].contains("is missing") && found[0].contains("domain 'd'"))
      << found[0];
  dir.write("credentials.json", R"({"extends": "base"})");
  found = dir.with(out);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains(R"(needs "home": "private" and "tmp": "private")")) << found[0];
  dir.write("credentials.json", R"({"extends": "base", "why": {"/home": "T0 has no mounts", "/tmp": "T0 has no mounts"}})");
  EXPECT_EQ(dir.with(out), Texts{});
  dir.write("credentials.json", R"({"extends": "base", "home": "private", "tmp": "private"})");
  ASSERT_EQ(dir.with(out), Texts{});
  const auto bindings = bindings_of(*dir.policy());
  ASSERT_EQ(bindings.size(), 1U);
  EXPECT_TRUE(bindings[0].command == "print-token --audience x" && bindings[0].refresh_seconds == 60 && bindings[0].file.empty());
  const json::Value secret = to_json(*dir.policy())["secrets"][0];
  EXPECT_TRUE(secret["command"] == "print-token --audience x" && secret["refresh_seconds"] == 60 && !secret.contains("file"));
  ASSERT_EQ(dir.with(out_with(without_file(R"("handed": true)"))), Texts{});
  EXPECT_TRUE(bindings_of(*dir.policy())[0].command.empty() && to_json(*dir.policy())["secrets"][0]["handed"] == true);
}

TEST(Secrets, MoreThanAParentWithAWayOutBindsNeedsAReason) {
  Directory dir;
  dir.write("base.json", "{" + out_with("") + R"(, "syscalls": {"allow": ["io"]}})");
  const std::string secrets = std::string(R"("secrets": [)") + kToken + "]";
  const Texts found = dir.with(secrets);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains("/secrets: gives more than base")) << found[0];
  EXPECT_EQ(dir.with(secrets + R"(, "weaken": [{"field": "/secrets", "why": "for the tests"}])"), Texts{});
  EXPECT_EQ(bindings_of(*dir.policy()).size(), 1U);
  dir.write("base.json", "{" + out_with(kToken) + R"(, "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.with(R"("description": "the same")"), Texts{});
  EXPECT_EQ(bindings_of(*dir.policy()).size(), 1U);
  EXPECT_EQ(dir.with(R"("secrets": [])"), Texts{}) << "less needs none";
  EXPECT_TRUE(bindings_of(*dir.policy()).empty());
}

TEST(Secrets, APresetLeavesThoseThatItNames) {
  Directory dir;
  dir.write("base.json", "{" + out_with(std::string(kToken) + "," + token_with(R"("name": "other", "env": "OTHER")")) +
                             R"(, "syscalls": {"allow": ["io"]}})");
  std::filesystem::create_directory(dir.path() + "/presets");
  dir.write("presets/few.json", std::string(R"({"secrets": [)") + kToken + "]}");
  dir.write("presets/none.json", R"({"network": "none"})");
  const auto under = [&dir](const char* preset) {
    const LoadResult loaded = load_directory(dir.path(), {.only = "", .preset = preset});
    for (const Problem& problem : loaded.problems) ADD_FAILURE() << problem.text();
    return loaded.policies.empty() ? Policy() : *loaded.policies.at("d");
  };
  const auto left = bindings_of(under("few"));
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].name, "token");
  EXPECT_FALSE(under("none").env.set.contains("API_TOKEN"));
}

}  // namespace
}  // namespace caisson::policy
