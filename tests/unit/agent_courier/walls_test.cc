#include "agent/courier/walls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "launcher/common/making/calls.h"

namespace caisson::courier {
namespace {

int landlock_abi() { return raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION); }

// What `attempt` gives in a child that has closed itself in: its errno, 0 for success.
template <class Attempt>
int closed_in(Attempt attempt) {
  const pid_t child = ::fork();
  if (child == 0) {
    Destinations to;
    if (auto url = parse_url("http://127.0.0.1:9/")) to.keys = std::move(*url);
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !close_in(to)) ::_exit(255);
    ::_exit(attempt() ? 0 : errno);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool opens(const char* path, int flags) { return ::open(path, flags, 0600) >= 0; }

bool connects(std::uint16_t port) {
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

class Walls : public testing::Test {
  void SetUp() override {
    if (landlock_abi() < 4) GTEST_SKIP() << "this kernel's Landlock knows no ports";
  }
};

TEST_F(Walls, TheStoreOfCertificatesCanBeRead) {
  EXPECT_EQ(closed_in([] { return opens("/etc/ssl", O_RDONLY | O_DIRECTORY); }), 0);
  EXPECT_EQ(closed_in([] { return opens("/etc/hosts", O_RDONLY); }), 0);
}

TEST_F(Walls, NothingElseCanBeRead) {
  for (const char* path : {"/etc/passwd", "/etc/ld.so.cache", "/proc/self/environ", "/usr/bin/env"})
    EXPECT_EQ(closed_in([path] { return opens(path, O_RDONLY); }), EACCES) << path;
}

TEST_F(Walls, NothingCanBeWritten) {
  for (const char* path : {"/tmp/courier-wall", "/dev/shm/courier-wall", "/etc/hosts"})
    EXPECT_EQ(closed_in([path] { return opens(path, O_WRONLY | O_CREAT); }), EACCES) << path;
}

TEST_F(Walls, NothingCanBeExecuted) {
  const auto executes = [] {
    char name[] = "true";
    char* const argv[] = {name, nullptr};
    return ::execv("/usr/bin/true", argv) == 0;
  };
  EXPECT_EQ(closed_in(executes), EACCES);
}

TEST_F(Walls, OnlyThePortsOfItsAddressesAndOfNamesAreConnectedTo) {
  EXPECT_EQ(closed_in([] { return connects(9); }), ECONNREFUSED);
  EXPECT_EQ(closed_in([] { return connects(53); }), ECONNREFUSED);
  EXPECT_EQ(closed_in([] { return connects(80); }), EACCES);
  EXPECT_EQ(closed_in([] { return connects(8080); }), EACCES);
}

TEST_F(Walls, NoPortIsBound) {
  const auto binds = [] {
    sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(0), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return ::bind(::socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  };
  EXPECT_EQ(closed_in(binds), EACCES);
}

}  // namespace
}  // namespace caisson::courier
