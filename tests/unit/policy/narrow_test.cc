// What a request may take away, and that it can never add.
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/fields.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

struct Narrow : testing::Test {
  Narrow() {
    dir.write("base.json",
              R"({"grants": [{"path": "/usr", "execute": true}, {"path": "/data", "access": "read-write", "source": "/srv/data"},
      {"path": "/data/fixed"}, {"path": "/data/fixed/open", "access": "read-write"}],
      "hide": ["/usr/lib/caisson"], "syscalls": {"allow": ["io"]}})");
    policy = dir.policy();
  }
  Result<std::shared_ptr<const Policy>> by(const std::string& text) {
    auto object = json::parse(text);
    if (!object) return std::unexpected(object.error());
    TRY_ASSIGN(const Narrowing narrowing, parse_narrowing(*object));
    return narrow(policy, narrowing);
  }
  std::string error(const std::string& text) {
    auto result = by(text);
    return result ? "" : std::string(code_name(result.error().code)) + " " + result.error().text();
  }
  Directory dir;
  std::shared_ptr<const Policy> policy;
};

TEST_F(Narrow, NothingAskedChangesNothing) {
  const auto same = by("{}");
  ASSERT_TRUE(same);
  EXPECT_EQ((*same)->digest, policy->digest);
}

TEST_F(Narrow, LimitsOnlyGetSmaller) {
  const auto less = by(R"({"limits": {"processes": 8, "execs": 1}})");
  ASSERT_TRUE(less);
  EXPECT_EQ((*less)->limits.processes, 8U);
  EXPECT_NE((*less)->digest, policy->digest);
  EXPECT_EQ(policy->limits.processes, 512U);
  EXPECT_EQ(error(R"({"limits": {"processes": 513}})"),
            "permission_denied /limits/processes: 513 is not from 1 to 512 in policy 'd'");
  EXPECT_EQ(error(R"({"limits": {"processes": 0}})"), "invalid_argument /limits/processes: 0 is not from 1 to 65536");
  EXPECT_TRUE(error(R"({"limits": {"proceses": 1}})")
                  .starts_with("invalid_argument /limits/proceses: a request cannot narrow this field, only these: grants "));
}

TEST_F(Narrow, NarrowingItselfChecksItsLimits) {
  EXPECT_FALSE(narrow(policy, {.limits = {{"nope", 1}}}));
  EXPECT_FALSE(narrow(policy, {.limits = {{"processes", 0}}}));
  EXPECT_FALSE(narrow(policy, {.grants = {{{.path = "/usr/../etc"}}}}));
}

TEST_F(Narrow, ScopesAndNetwork) {
  const auto less = by(R"({"home": "private", "tmp": "private", "network": "none"})");
  ASSERT_TRUE(less);
  EXPECT_EQ((*less)->home, Scope::private_);
  EXPECT_EQ((*less)->tmp, Scope::private_);
  EXPECT_EQ((*less)->network, Network::none);
  EXPECT_EQ(error(R"({"home": "workspace"})"), "invalid_argument /home: a request can only ask for \"private\"");
  EXPECT_EQ(error(R"({"network": "loopback"})"), "invalid_argument /network: a request can only ask for \"none\"");
  EXPECT_EQ(error(R"({"network": null})"), "invalid_argument /network: a request can only ask for \"none\"");
}

TEST_F(Narrow, UnknownKeysAreRefused) {
  EXPECT_EQ(error(R"({"netwrok": "none"})"),
            "invalid_argument /netwrok: a request cannot narrow this field, only these: grants protect protect_home home tmp "
            "system_packages network limits/processes limits/memory_bytes limits/cpu_percent limits/open_files "
            "limits/file_size_bytes limits/cpu_seconds limits/tmp_bytes limits/tmp_inodes limits/packages_bytes "
            "limits/session_seconds limits/execs limits/io_read_bytes_per_second limits/io_write_bytes_per_second");
  EXPECT_TRUE(
      error(R"({"disable": []})").starts_with("invalid_argument /disable: a request cannot narrow this field, only these: "));
  EXPECT_EQ(error("[]"), "invalid_argument narrow must be an object");
}

// Two parsers, one of files by the table of fields and one of requests: what one takes of a field the other takes, too.
TEST_F(Narrow, ARequestsFieldsAreThoseOfAPolicy) {
  const std::string long_text(600, 'x'), longer(1001, 'x');
  std::vector<std::string> values{"null",
                                  "true",
                                  "0",
                                  "1",
                                  "-1",
                                  "1.5",
                                  "1e3",
                                  "17",
                                  "100",
                                  "65535",
                                  "65536",
                                  "65537",
                                  "134217727",
                                  "134217728",
                                  "17592186044416",
                                  "17592186044417",
                                  "18446744073709551615",
                                  "[]",
                                  "{}",
                                  "[1]",
                                  "[{}]",
                                  R"("")",
                                  R"("read")",
                                  R"("read-write")",
                                  R"("rw")",
                                  R"("/usr")",
                                  R"("usr")",
                                  R"("/")",
                                  R"("/a\u0000b")",
                                  R"("a\u0000b")",
                                  R"("a\nb")",
                                  '"' + long_text + '"',
                                  '"' + longer + '"'};
  std::vector<std::string> asked{R"({"grants": [{}]})", R"({"grants": [[]]})", R"({"grants": [{"path": "/usr", "more": 1}]})",
                                 R"({"limits": {"more": 1}})"};
  std::string many;
  for (std::size_t i = 0; i <= kMaxGrants; ++i) {
    asked.push_back("{\"grants\": [" + many + "]}");
    many += std::string(many.empty() ? "" : ", ") + "{\"path\": \"/usr/" + std::to_string(i) + "\"}";
  }
  asked.push_back("{\"grants\": [" + many + "]}");
  for (const std::string& value : values) {
    for (const Row& row : kRows)
      if (row.pointer.starts_with("/limits/"))
        asked.push_back("{\"limits\": {\"" + std::string(row.name()) + "\": " + value + "}}");
    for (const char* key : {"path", "source", "access", "execute", "required", "description", "why"})
      asked.push_back(std::string("{\"grants\": [{") + (key == std::string("path") ? "" : "\"path\": \"/usr\", ") + "\"" + key +
                      "\": " + value + "}]}");
    for (const char* key : {"grants", "limits"}) asked.push_back(std::string("{\"") + key + "\": " + value + "}");
  }
  for (const std::string& text : asked) {
    const auto object = json::parse(text);
    if (!object) continue;
    Problems problems;
    validate({.file = "", .doc = *object, .lines = {}}, policy_fields(), problems);
    const auto parsed = parse_narrowing(*object);
    EXPECT_EQ(parsed.has_value(), problems.count() == 0) << text.substr(0, 200);
    if (!parsed) {
      EXPECT_TRUE(parsed.error().text().starts_with(problems.take().front().pointer + ": ")) << parsed.error().text();
    }
  }
}

TEST_F(Narrow, GrantsMustLieInsideOnes) {
  EXPECT_EQ(error(R"({"grants": [{"path": "/etc"}]})"), "permission_denied /grants/0/path: no grant holds '/etc' in policy 'd'");
  EXPECT_EQ(error(R"({"grants": [{"path": "/usr2"}]})"),
            "permission_denied /grants/0/path: no grant holds '/usr2' in policy 'd'");
  EXPECT_EQ(error(R"({"grants": [{"path": "/usr", "access": "read-write"}]})"),
            "permission_denied /grants/0/access: '/usr' is read-only in policy 'd'");
  EXPECT_EQ(error(R"({"grants": [{"path": "/data", "execute": true}]})"),
            "permission_denied /grants/0/execute: '/data' is not executable in policy 'd'");
  EXPECT_EQ(error(R"({"grants": [{"path": "/data/x", "source": "/etc"}]})"),
            "permission_denied /grants/0/source: '/data/x' has another source in policy 'd'");
  EXPECT_EQ(error(R"({"grants": [{"path": "/data/fixed/a", "access": "read-write"}]})"),
            "permission_denied /grants/0/access: '/data/fixed/a' is read-only in policy 'd'");
}

TEST_F(Narrow, PathsThatAreNotCanonicalAreRefused) {
  for (const char* path : {"/", "//", "usr", "", "/usr/../etc", "/usr/", "/usr/./lib", "/usr\\u0000/x"})
    EXPECT_TRUE(error(std::string(R"({"grants": [{"path": ")") + path + "\"}]}").starts_with("invalid_argument /grants/0/path: "))
        << path;
  EXPECT_TRUE(error(R"({"grants": [{"path": "/)" + std::string(4096, 'a') + "\"}]}")
                  .starts_with("invalid_argument /grants/0/path: path is longer"));
}

TEST_F(Narrow, DuplicatesAreRefused) {
  EXPECT_EQ(error(R"({"grants": [{"path": "/usr"}, {"path": "/usr"}]})"),
            "invalid_argument /grants/1/path: is granted twice: '/usr'");
}

TEST_F(Narrow, GrantsAreExactlyTheAskedOnesWithThePolicysSource) {
  const auto less = by(R"({"grants": [{"path": "/data/in/x"}]})");
  ASSERT_TRUE(less);
  ASSERT_EQ((*less)->grants.size(), 1U);
  EXPECT_EQ((*less)->grants[0].source, "/srv/data/in/x");
  EXPECT_EQ((*less)->grants[0].access, Access::read);
  EXPECT_TRUE((*less)->hide.empty());  // /usr is gone, and what was hidden in it
}

TEST_F(Narrow, HiddenPathsStayHidden) {
  const auto less = by(R"({"grants": [{"path": "/usr", "execute": true}]})");
  ASSERT_TRUE(less);
  EXPECT_EQ((*less)->hide, std::vector<std::string>{"/usr/lib/caisson"});
}

TEST_F(Narrow, Flaw03AGrantInWhatIsHiddenIsRefused) {
  EXPECT_EQ(
      error(R"({"grants": [{"path": "/usr/lib/caisson/agent"}]})"),
      "permission_denied /grants/0/path: '/usr/lib/caisson/agent' lies in '/usr/lib/caisson', which is hidden, in policy 'd'");
  const auto itself = by(R"({"grants": [{"path": "/usr/lib/caisson"}]})");
  ASSERT_TRUE(itself);
  EXPECT_EQ((*itself)->hide, std::vector<std::string>{"/usr/lib/caisson"});
}

TEST_F(Narrow, ACarveOutCannotBeDropped) {
  const auto less = by(R"({"grants": [{"path": "/data", "access": "read-write"}]})");
  ASSERT_TRUE(less);
  ASSERT_EQ((*less)->grants.size(), 2U);
  EXPECT_EQ((*less)->grants[1].path, "/data/fixed");
  EXPECT_EQ((*less)->grants[1].access, Access::read);
}

TEST_F(Narrow, AGrantInsideWithAnotherSourceStaysToo) {
  const auto less = by(R"({"grants": [{"path": "/data"}]})");
  ASSERT_TRUE(less);
  ASSERT_EQ((*less)->grants.size(), 2U);  // /data/fixed comes from /data/fixed, not from /srv/data/fixed
  EXPECT_EQ((*less)->grants[1].source, "/data/fixed");
}

}  // namespace
}  // namespace caisson::policy
