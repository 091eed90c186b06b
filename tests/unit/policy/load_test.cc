// Loading: each kind of problem with its exact text, and what a good directory becomes.
#include <unistd.h>

#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

TEST(Load, GoodDirectoryHasDomainsButNotBase) {
  Directory dir;
  const auto loaded = load_directory(dir.path());
  EXPECT_TRUE(loaded.problems.empty());
  ASSERT_EQ(loaded.policies.size(), 1U);
  const Policy& policy = *loaded.policies.at("d");
  EXPECT_EQ(policy.domain, "d");
  EXPECT_EQ(policy.digest.size(), 64U);
  ASSERT_EQ(policy.grants.size(), 2U);
  EXPECT_EQ(policy.grants[0].path, "/data");
  EXPECT_EQ(policy.grants[0].source, "/data");
  EXPECT_EQ(policy.grants[0].access, Access::read_write);
  EXPECT_TRUE(policy.grants[1].execute);
  ASSERT_EQ(policy.sets.size(), 1U);
  EXPECT_EQ(policy.sets[0].allow.size(), 3U);
}

TEST(Load, OneDomainAloneIsTheSame) {
  Directory dir;
  dir.write("broken.json", "{");
  EXPECT_FALSE(load_directory(dir.path()).problems.empty());
  const auto loaded = load_directory(dir.path(), {"d", ""});
  EXPECT_TRUE(loaded.problems.empty());
  ASSERT_EQ(loaded.policies.size(), 1U);
  dir.remove("broken.json");
  EXPECT_EQ(loaded.policies.at("d")->digest, dir.policy()->digest);
  dir.write("bash.json", R"({"extends": "base"})");
  EXPECT_EQ(load_directory(dir.path(), {"bahs", ""}).problems.at(0).text(), dir.path() + ": has no domain 'bahs'; meant 'bash'?");
}

TEST(Load, DigestFollowsContentNotLayout) {
  Directory dir;
  const auto before = dir.policy()->digest;
  dir.write("d.json", "\n\n{  \"extends\":\"base\" }");
  EXPECT_EQ(dir.policy()->digest, before);
  dir.write("seccomp/io.json", R"({"name": "io", "why": "for the tests", "allow": [{"names": ["read", "ioctl"]}]})");
  EXPECT_NE(dir.policy()->digest, before);
}

TEST(Load, UnknownFieldIsNamedWithWhatWasMeant) {
  Directory dir;
  EXPECT_EQ(dir.with("\n\n\"limits\": {\n\"procesess\": 3}"),
            Texts{"d.json:5 /limits/procesess: unknown field 'procesess'; meant 'processes'?"});
  EXPECT_EQ(dir.with("\"frobnicate\": 1"), Texts{"d.json:2 /frobnicate: unknown field 'frobnicate'"});
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/usr\", \"acces\": \"read\"}]"),
            Texts{"d.json:2 /grants/0/acces: unknown field 'acces'; meant 'access'?"});
}

TEST(Load, TheUserNamespaceCannotBeSwitchedOff) {
  Directory dir;
  const Texts problems =
      dir.with("\"disable\": [\"user_ns\"],\n\"weaken\": [{\"field\": \"/disable\", \"why\": \"for the tests\"}]");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].starts_with("d.json:2 /disable: \"user_ns\" cannot be switched off")) << problems[0];
}

TEST(Load, TypesAndBounds) {
  Directory dir;
  EXPECT_EQ(dir.with("\"limits\": {\"processes\": 0}"), Texts{"d.json:2 /limits/processes: 0 is not from 1 to 65536"});
  EXPECT_EQ(dir.with("\"limits\": {\"processes\": -1}"),
            Texts{"d.json:2 /limits/processes: must be a whole number, from 1 to 65536"});
  EXPECT_EQ(dir.with("\"limits\": {\"processes\": 1.5}"),
            Texts{"d.json:2 /limits/processes: must be a whole number, from 1 to 65536"});
  EXPECT_EQ(dir.with("\"limits\": []"), Texts{"d.json:2 /limits: must be an object"});
  EXPECT_EQ(dir.with("\"home\": \"privat\""),
            Texts{"d.json:2 /home: unknown value 'privat', must be one of: private read workspace; meant 'private'?"});
  EXPECT_EQ(dir.with("\"require\": [\"secomp\"]").front(),
            "d.json:2 /require/0: unknown value 'secomp', must be one of: user_ns mount_ns pid_ns ipc_ns uts_ns net_ns cgroup_ns "
            "proc cgroup io "
            "rlimits uid capabilities no_new_privs landlock seccomp fds env denial_audit; meant 'seccomp'?");
  EXPECT_EQ(dir.with("\"umask\": 22"), Texts{"d.json:2 /umask: must be a string of three octal digits, such as \"022\""});
  EXPECT_EQ(dir.with("\"proc_shared_fallback\": \"yes\""), Texts{"d.json:2 /proc_shared_fallback: must be true or false"});
  EXPECT_EQ(dir.with("\"devices\": [\"null\", \"null\"]"), Texts{"d.json:2 /devices/1: is listed twice: 'null'"});
  EXPECT_EQ(dir.with("\"hostname\": \"a b\""), Texts{"d.json:2 /hostname: not a host name of one label: 'a b'"});
  EXPECT_EQ(dir.with("\"env\": {\"set\": {\"A-B\": \"x\"}}"),
            Texts{"d.json:2 /env/set/A-B: not the name of an environment variable: 'A-B'"});
  EXPECT_EQ(dir.with("\"env\": {\"set\": {\"A\": \"x\\u0000y\"}}"),
            Texts{"d.json:2 /env/set/A: text holds a NUL byte: 'x\\x00y'"});
  EXPECT_EQ(dir.with("\"grants\": [{\"access\": \"read\"}]"), Texts{"d.json:2 /grants/0: field 'path' is missing"});
  dir.write("d.json", "[]");
  EXPECT_EQ(dir.problems(), Texts{"d.json:1: must be an object"});
}

TEST(Load, GrantPathsAreAbsoluteAndCanonical) {
  Directory dir;
  const auto grant = [&](const std::string& path) {
    const auto found = dir.with("\"grants\": [{\"path\": \"" + path + "\"}]");
    return found.empty() ? "" : found.front();
  };
  EXPECT_EQ(grant("/srv/../etc"), "d.json:2 /grants/0/path: path is not canonical: '/srv/../etc'; meant '/etc'?");
  EXPECT_EQ(grant("/usr/"), "d.json:2 /grants/0/path: path is not canonical: '/usr/'; meant '/usr'?");
  EXPECT_EQ(grant("/usr//lib"), "d.json:2 /grants/0/path: path is not canonical: '/usr//lib'; meant '/usr/lib'?");
  EXPECT_EQ(grant("usr"), "d.json:2 /grants/0/path: path is not absolute: 'usr'; meant '/usr'?");
  EXPECT_EQ(grant(".."), "d.json:2 /grants/0/path: path is not absolute: '..'");
  EXPECT_EQ(grant("~/x"), "d.json:2 /grants/0/path: path is not absolute: '~/x'");
  EXPECT_EQ(grant("/"), "d.json:2 /grants/0/path: path is the root: '/' would show everything; name what is needed");
  EXPECT_EQ(grant("//"), "d.json:2 /grants/0/path: path is the root: '//' would show everything; name what is needed");
  EXPECT_EQ(grant("/usr/../.."),
            "d.json:2 /grants/0/path: path is the root: '/usr/../..' would show everything; name what is needed");
  EXPECT_EQ(grant("/a\\u0000b"), "d.json:2 /grants/0/path: text holds a NUL byte: '/a\\x00b'");
  EXPECT_EQ(grant("/a\\nb"), "d.json:2 /grants/0/path: path holds a control character: '/a\\x0ab'");
  EXPECT_EQ(grant(""), "d.json:2 /grants/0/path: path is empty");
  EXPECT_EQ(grant("/" + std::string(4096, 'a')),
            "d.json:2 /grants/0/path: path is longer than 4095 bytes: '/" + std::string(39, 'a') + "...'");
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/usr\", \"source\": \"opt\"}]").front(),
            "d.json:2 /grants/0/source: path is not absolute: 'opt'; meant '/opt'?");
}

TEST(Load, GrantsThatTheLauncherMakesItselfAreRefused) {
  Directory dir;
  const auto grant = [&](const std::string& path) {
    return dir
        .with("\"weaken\": [{\"field\": \"/grants" + path + "\", \"why\": \"for a test\"}],\n\"grants\": [{\"path\": \"" + path +
              "\"}]")
        .front();
  };
  EXPECT_EQ(grant("/proc/sys"), "d.json:3 /grants/0/path: '/proc/sys' lies in /proc, which the launcher mounts");
  EXPECT_EQ(grant("/dev"), "d.json:3 /grants/0/path: '/dev' lies in /dev, which the launcher mounts");
  EXPECT_EQ(grant("/tmp"), "d.json:3 /grants/0/path: '/tmp' is what the field 'tmp' decides");
  EXPECT_EQ(grant("/home/gem"), "d.json:3 /grants/0/path: '/home/gem' is what the field 'home' decides");
}

TEST(Load, DuplicateGrants) {
  Directory dir;
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/usr\"},\n{\"path\": \"/usr\"}]"),
            Texts{"d.json:3 /grants/1/path: is granted twice: '/usr', first in /grants/0"});
}

TEST(Load, SyntaxErrorsAndDuplicateKeysHaveALine) {
  Directory dir;
  dir.write("d.json", "{\n\"extends\": \"base\",\n\"home\": \"private\",\n\"home\": \"private\"}");
  EXPECT_EQ(dir.problems(), Texts{"d.json:4: duplicate key 'home'"});
  dir.write("d.json", "{\n\n}}");
  ASSERT_EQ(dir.problems().size(), 1U);
  EXPECT_TRUE(dir.problems()[0].starts_with("d.json:3: ")) << dir.problems()[0];
}

TEST(Load, ExtendsIsBaseAndNothingElse) {
  Directory dir;
  dir.write("d.json", "{}");
  EXPECT_EQ(dir.problems(), Texts{"d.json:1: field 'extends' is missing: \"base\", or another domain's name"});
  dir.write("d.json", "{\n\"extends\": \"bash\"}");
  EXPECT_EQ(dir.problems(), Texts{"d.json:2 /extends: there is no 'bash.json'"});
}

TEST(Load, AllProblemsOfAllFilesComeAtOnceAndTheSetIsEmpty) {
  Directory dir;
  dir.write("e.json", "{\"extends\": \"base\", \"tmp\": \"x\"}");
  dir.write("d.json", "{\"extends\": \"base\", \"home\": 1,\n\"limits\": {\"execs\": 0}}");
  const auto loaded = load_directory(dir.path());
  EXPECT_EQ(loaded.problems.size(), 3U);
  EXPECT_TRUE(loaded.policies.empty());
}

TEST(Load, AtMostTwentyProblemsAreShown) {
  Directory dir;
  std::string fields;
  for (int i = 0; i < 25; ++i) fields += std::string(i ? "," : "") + "\"zzzzzzz" + std::to_string(i) + "\": 1";
  const auto found = dir.with(fields);
  ASSERT_EQ(found.size(), 20U);
  EXPECT_EQ(found.back(), "and 6 more");
}

TEST(Load, BadBaseIsReportedOnce) {
  Directory dir;
  dir.write("e.json", "{\"extends\": \"base\"}");
  dir.write("base.json", "{\"syscalls\": {\"allow\": [\"oi\"]}}");
  EXPECT_EQ(dir.problems(), Texts{"base.json:1 /syscalls/allow/0: no such set: there is no seccomp/oi.json; meant 'io'?"});
  dir.remove("base.json");
  ASSERT_EQ(dir.problems().size(), 1U);
  EXPECT_EQ(dir.problems()[0], "base.json: open 'base.json': ENOENT (No such file or directory)");
}

TEST(Load, SymbolicLinksLargeFilesAndOddNamesAreRefused) {
  Directory dir;
  ASSERT_EQ(::symlink("base.json", (dir.path() + "/s.json").c_str()), 0);
  EXPECT_EQ(dir.problems(), Texts{"s.json: is a symbolic link: policies are read from regular files only"});
  dir.remove("s.json");
  dir.write("x.json", std::string(256 * 1024 + 1, ' '));
  EXPECT_EQ(dir.problems(), Texts{"x.json: larger than 262144 bytes"});
  dir.remove("x.json");
  dir.write("A b.json", "{\"extends\": \"base\"}");
  EXPECT_EQ(dir.problems(), Texts{"A b.json: name must be a-z, 0-9 and '-', at most 32: 'A b'"});
  dir.remove("A b.json");
  std::filesystem::create_directory(dir.path() + "/dir.json");
  EXPECT_EQ(dir.problems(), Texts{"dir.json: is not a regular file"});
}

TEST(Load, FilesThatOthersMayWriteAreRefusedAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "ownership counts for root only";
  Directory dir;
  const std::string file = dir.path() + "/d.json";
  ::chmod(file.c_str(), 0664);
  EXPECT_EQ(dir.problems(), Texts{"d.json: is writable by users other than root (chmod go-w)"});
  ::chmod(file.c_str(), 0644);
  if (::chown(file.c_str(), 1000, 0) != 0) GTEST_SKIP() << "cannot chown";
  EXPECT_EQ(dir.problems(), Texts{"d.json: belongs to uid 1000, not to root: its owner could widen every session (chown root)"});
}

TEST(Load, ADirectoryThatIsNotThere) {
  const auto loaded = load_directory("/nonexistent/policies");
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(loaded.problems[0].text(), "/nonexistent/policies: open '/nonexistent/policies': ENOENT (No such file or directory)");
}

TEST(Load, FilesLinksAndHiddenPathsMustFitTheGrants) {
  Directory dir;
  EXPECT_EQ(dir.with("\"files\": {\"/usr/x\": \"\"}"),
            Texts{"d.json:2 /files/~1usr~1x: '/usr/x' lies inside the grant of '/usr', which it would change"});
  EXPECT_EQ(dir.with("\"files\": {\"/tmp/x\": \"\"}"),
            Texts{"d.json:2 /files/~1tmp~1x: '/tmp/x' lies in a directory that sessions may write"});
  EXPECT_EQ(dir.with("\"files\": {\"/a\": \"\", \"/a/b\": \"\"}"),
            Texts{"d.json:2 /files/~1a: '/a' cannot be made: another file or link of this policy is below it"});
  EXPECT_EQ(dir.with("\"files\": {\"/a\": \"\"}, \"links\": {\"/a\": \"b\"}"),
            Texts{"d.json:2 /links/~1a: '/a' is also in 'files'"});
  EXPECT_EQ(dir.with("\"links\": {\"/a\": \"\"}"), Texts{"d.json:2 /links/~1a: target is empty"});
  EXPECT_EQ(dir.with("\"hide\": [\"/usr/lib/caisson\", \"/opt\"]"),
            Texts{"d.json:2 /hide: '/opt' is in no grant: there is nothing to hide"});
  EXPECT_EQ(dir.with("\"files\": {\"/etc/x\": 1}"), Texts{"d.json:2 /files/~1etc~1x: must be a string or a list of lines"});
  EXPECT_EQ(dir.with("\"home_path\": \"/proc/x\"").front(), "d.json:2 /home_path: cannot lie in /proc, /dev or /tmp: '/proc/x'");
}

TEST(Load, FilesAreTextOrLines) {
  Directory dir;
  EXPECT_TRUE(dir.with("\"files\": {\"/etc/a\": \"x\", \"/etc/b\": [\"one\", \"two\"]}").empty());
  EXPECT_EQ(dir.policy()->files, (std::map<std::string, std::string>{{"/etc/a", "x"}, {"/etc/b", "one\ntwo\n"}}));
}

}  // namespace
}  // namespace caisson::policy
