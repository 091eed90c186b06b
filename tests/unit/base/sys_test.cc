// System calls as Results: close-on-exec everywhere, bounded reads, sealed memory, and what openat2 refuses.
#include "launcher/common/base/sys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>

#include "launcher/seal/sealed_memfd.h"

namespace caisson::sys {
namespace {

bool close_on_exec(const Fd& fd) { return (::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0; }

struct Sys : testing::Test {
  Sys() {
    char name[] = "/tmp/caisson-sys-XXXXXX";
    dir = ::mkdtemp(name);
  }
  ~Sys() override { std::filesystem::remove_all(dir); }
  std::string dir;
};

TEST_F(Sys, EveryDescriptorIsCloseOnExec) {
  EXPECT_TRUE(close_on_exec(*open(dir, O_RDONLY | O_DIRECTORY)));
  const auto pair = pipe();
  EXPECT_TRUE(close_on_exec(pair->first) && close_on_exec(pair->second));
  const auto sockets = seqpacket_pair();
  EXPECT_TRUE(close_on_exec(sockets->first) && close_on_exec(sockets->second));
  EXPECT_TRUE(close_on_exec(*seal::sealed_memfd("x", "y")));
  EXPECT_TRUE(close_on_exec(*pidfd_open(::getpid())));
}

TEST_F(Sys, OpenNamesThePathAndTheErrno) {
  const auto missing = open(dir + "/no\nne", O_RDONLY);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_EQ(missing.error().sys, ENOENT);
  EXPECT_TRUE(missing.error().what.ends_with("/no\\x0ane'"));
}

TEST_F(Sys, Openat2RefusesLinksAndLeavingTheDirectory) {
  ASSERT_EQ(::symlink("/etc", (dir + "/link").c_str()), 0);
  const auto root = open(dir, O_PATH | O_DIRECTORY);
  EXPECT_EQ(openat2(root->get(), "link", O_PATH, RESOLVE_NO_SYMLINKS).error().sys, ELOOP);
  EXPECT_EQ(openat2(root->get(), "..", O_PATH, RESOLVE_BENEATH).error().sys, EXDEV);
  EXPECT_EQ(openat2(root->get(), "link/passwd", O_RDONLY, RESOLVE_BENEATH).error().sys, EXDEV);
  EXPECT_TRUE(openat2(root->get(), ".", O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
}

TEST_F(Sys, ReadsAreBounded) {
  const std::string path = dir + "/f";
  {
    const auto fd = open(path, O_WRONLY | O_CREAT, 0600);
    ASSERT_TRUE(write_all(fd->get(), std::string(20'000, 'x')));
  }
  EXPECT_EQ(read_file(path, 20'000)->size(), 20'000U);
  const auto cut = read_file(path, 19'999);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::limit);
  EXPECT_TRUE(read_file("/proc/self/status", 1 << 16)->starts_with("Name:"));
}

TEST_F(Sys, WriteFileWritesExistingFilesOnly) {
  EXPECT_EQ(write_file(dir + "/none", "x").error().sys, ENOENT);
  (void)open(dir + "/f", O_WRONLY | O_CREAT, 0600);
  EXPECT_TRUE(write_file(dir + "/f", "value"));
  EXPECT_EQ(*read_file(dir + "/f", 10), "value");
}

TEST_F(Sys, SealedMemoryCannotChange) {
  const auto fd = seal::sealed_memfd("program", "content");
  ASSERT_TRUE(fd);
  EXPECT_EQ(::write(fd->get(), "x", 1), -1);
  EXPECT_EQ(::ftruncate(fd->get(), 0), -1);
  EXPECT_EQ(::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  char first = 0;
  EXPECT_EQ(::pread(fd->get(), &first, 1, 0), 1);
  EXPECT_EQ(first, 'c');
}

TEST_F(Sys, SeqpacketKeepsMessagesApartAndOnlyTheFirstEndIsNonBlocking) {
  const auto pair = seqpacket_pair();
  EXPECT_NE(::fcntl(pair->first.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(::fcntl(pair->second.get(), F_GETFL) & O_NONBLOCK, 0);
  ASSERT_EQ(::send(pair->second.get(), "ab", 2, 0), 2);
  ASSERT_EQ(::send(pair->second.get(), "c", 1, 0), 1);
  char buffer[8];
  EXPECT_EQ(::recv(pair->first.get(), buffer, sizeof buffer, 0), 2);
}

TEST_F(Sys, PidfdSignalsTheVeryProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto pidfd = pidfd_open(child);
  ASSERT_TRUE(pidfd);
  EXPECT_TRUE(pidfd_send_signal(pidfd->get(), SIGKILL));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(pidfd_send_signal(pidfd->get(), SIGKILL).error().sys, ESRCH);
}

TEST(Exiting, IsWhoEndsOrHasEnded) {
  EXPECT_FALSE(exiting(::getpid()));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(exiting(child)) << "not reaped";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(exiting(child));
}

TEST(Time, Rfc3339) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(1'767'323'045'000'006'999), "2026-01-02T03:04:05.000006Z");
}

TEST(Time, MonotonicDoesNotGoBack) {
  const auto before = monotonic_us();
  EXPECT_LE(before, monotonic_us());
  EXPECT_GT(realtime_ns(), 1'600'000'000'000'000'000);
}

TEST(Random, HexHasTheLengthAndDiffers) {
  const auto one = random_hex(16);
  EXPECT_EQ(one.size(), 32U);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, random_hex(16));
}

TEST(FdOwner, MovesAndCloses) {
  auto pair = *pipe();
  const int raw = pair.first.get();
  Fd other = std::move(pair.first);
  EXPECT_FALSE(pair.first.valid());
  EXPECT_EQ(other.get(), raw);
  other.reset();
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
  const int released = pair.second.release();
  EXPECT_EQ(::close(released), 0);
}

}  // namespace
}  // namespace caisson::sys
