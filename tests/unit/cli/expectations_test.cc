// Expectations beside policies: read strictly, and probes that tell a refusal from a failure (here: outside any session).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "launcher/cli/policy_files.h"
#include "tests/unit/policy/directory.h"

namespace caisson::cli {
namespace {

std::string fault(const std::string& text) {
  const auto e = expectation_from(*json::parse(text));
  return e ? "" : e.error().what;
}
Expectation made(const std::string& text) { return *expectation_from(*json::parse(text)); }

TEST(Expectations, EveryKindIsReadAndWrittenAgain) {
  for (const char* text :
       {R"({"can":"read","path":"/etc/passwd"})", R"({"can":"write","path":"/x"})", R"({"cannot":"see","path":"/"})",
        R"({"argv":["a","b"],"can":"run"})", R"({"can":"listen","at":"127.0.0.1:0"})", R"({"cannot":"connect","to":"[::1]:2"})",
        R"({"args":[1,2],"cannot":"call","errno":"EPERM","syscall":"mount"})", R"({"cannot":"exceed","limit":"open_files"})"}) {
    EXPECT_EQ(fault(text), "") << text;
    EXPECT_EQ(to_json(made(text)), *json::parse(text));
    EXPECT_FALSE(made(text).text().empty());
  }
}

TEST(Expectations, WhatIsWrongIsNamed) {
  EXPECT_EQ(fault("{}"), "must have one of 'can' and 'cannot'");
  EXPECT_EQ(fault(R"({"can":"read","cannot":"read","path":"/x"})"), "must have one of 'can' and 'cannot'");
  EXPECT_TRUE(fault(R"({"can":"raed","path":"/x"})").contains("meant 'read'?"));
  EXPECT_TRUE(fault(R"({"can":"read","path":"etc"})").contains("not absolute"));
  EXPECT_TRUE(fault(R"({"can":"read"})").contains("'path' is missing"));
  EXPECT_TRUE(fault(R"({"can":"read","path":"/x","errno":"EPERM"})").contains("unknown member 'errno'"));
  EXPECT_TRUE(fault(R"({"cannot":"read","path":"/x","errno":"EFOO"})").contains("no such errno"));
  EXPECT_TRUE(fault(R"({"can":"exceed","limit":"open_files"})").contains("only \"cannot\""));
  EXPECT_TRUE(fault(R"({"cannot":"exceed","limit":"memory_bytes"})").contains("cgroup"));
  EXPECT_TRUE(fault(R"({"can":"run","argv":"ls"})").contains("must be a list"));
  EXPECT_TRUE(fault(R"({"can":"run","argv":[]})").contains("is empty"));
  EXPECT_TRUE(fault(R"({"can":"call","syscall":"read","args":[-1]})").contains("whole numbers"));
  EXPECT_TRUE(fault(R"({"can":"call","syscall":"read","args":[1,2,3,4,5,6,7]})").contains("too many"));
}

TEST(Expectations, AFilesProblemsHaveTheirLine) {
  policy::Directory dir;
  dir.write("t.json", "{\"domain\": \"d\", \"expct\": [],\n\"expect\": []}");
  EXPECT_TRUE(load_test_file(dir.path() + "/t.json")
                  .problems.at(0)
                  .text()
                  .ends_with("t.json:1 /expct: unknown field 'expct'; meant 'expect'?"));
  dir.write("t.json", "{\"domain\": \"d\", \"expect\": [\n{\"can\": \"read\", \"path\": \"/x\"},\n{\"can\": \"read\"}]}");
  const TestFiles files = load_test_file(dir.path() + "/t.json");
  EXPECT_TRUE(files.problems.at(0).text().contains("t.json:3 /expect/1: 'path' is missing"));
  EXPECT_EQ(load_test_file(dir.path() + "/none.json").problems.size(), 1U);
  EXPECT_TRUE(load_tests(dir.path() + "/none").files.empty());
}

TEST(Probes, TellWhatWorksFromWhatIsRefused) {
  policy::Directory dir;
  const json::Value env{{"PATH", "/usr/bin:/bin"}};
  const auto found = [&](const std::string& text) { return probe(made(text), env); };
  EXPECT_EQ(found(R"({"can":"read","path":"/etc/passwd"})").outcome, Outcome::worked);
  EXPECT_EQ(found(R"({"can":"read","path":"/usr"})").outcome, Outcome::worked);
  EXPECT_EQ(found(R"({"can":"read","path":"/none"})").error, ENOENT);
  EXPECT_EQ(found(R"({"can":"write","path":")" + dir.path() + R"("})").outcome, Outcome::worked);
  EXPECT_EQ(found(R"({"can":"write","path":")" + dir.path() + R"(/new"})").outcome, Outcome::worked);
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/new")) << "it leaves nothing";
  const std::string before = policy::read_text(dir.path() + "/base.json");
  EXPECT_EQ(found(R"({"can":"write","path":")" + dir.path() + R"(/base.json"})").outcome, Outcome::worked);
  EXPECT_EQ(policy::read_text(dir.path() + "/base.json"), before);
  EXPECT_EQ(found(R"({"can":"write","path":"/proc/none"})").outcome, Outcome::refused);
  EXPECT_EQ(found(R"({"can":"run","argv":["true"]})").outcome, Outcome::worked);
  EXPECT_EQ(found(R"({"can":"run","argv":["false"]})").outcome, Outcome::failed) << "it ran: that is no refusal";
  EXPECT_EQ(found(R"({"can":"run","argv":["/none"]})").error, ENOENT);
  EXPECT_EQ(found(R"({"can":"call","syscall":"getpid"})").outcome, Outcome::worked);
  EXPECT_EQ(found(R"({"can":"call","syscall":"no_such_call"})").outcome, Outcome::failed);
  EXPECT_EQ(found(R"({"can":"listen","at":"127.0.0.1:0"})").outcome, Outcome::worked);
  EXPECT_EQ(found(R"({"can":"connect","to":"example.org:80"})").outcome, Outcome::failed) << "an address, no name";
}

TEST(Probes, ARefusalByALoopbackPortIsOne) {
  // Bound and not listening: nobody else can take it, and connecting is refused.
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
  const auto f = probe(made(R"({"can":"connect","to":"127.0.0.1:)" + std::to_string(ntohs(at.sin_port)) + R"("})"), {});
  EXPECT_EQ(f.outcome, Outcome::refused);
  EXPECT_EQ(f.error, ECONNREFUSED);
  ::close(fd);
}

}  // namespace
}  // namespace caisson::cli
