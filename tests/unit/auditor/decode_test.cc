// Refused calls in words.
#include "launcher/auditor/decode.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "launcher/auditor/caller.h"
#include "launcher/common/telling/json_text.h"

namespace caisson::auditor {
namespace {

std::string words(int nr, unsigned long long a = 0, unsigned long long b = 0, unsigned long long c = 0,
                  unsigned long long d = 0) {
  const unsigned long long args[6] = {a, b, c, d, 0, 0};
  return decode(nr, args);
}

TEST(Decode, Sockets) {
  EXPECT_EQ(words(SYS_socket, AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 768),
            R"({"family":"AF_PACKET","type":"SOCK_RAW|SOCK_CLOEXEC","protocol":"768"})");
  EXPECT_EQ(words(SYS_socket, 77, 9, 0), R"({"family":"77","type":"9","protocol":"0"})");
}

TEST(Decode, TheKernelReadsTheLowerHalfOfAnInt) {
  EXPECT_EQ(words(SYS_socket, 0x500000011ULL, 3, 0xffffffffULL), R"({"family":"AF_PACKET","type":"SOCK_RAW","protocol":"-1"})");
}

TEST(Decode, FlagsLeaveNoBitOut) {
  EXPECT_EQ(words(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS), R"({"flags":"CLONE_NEWNS|CLONE_NEWUSER"})");
  EXPECT_EQ(words(SYS_unshare, 1ULL << 32 | CLONE_NEWNET), R"({"flags":"CLONE_NEWNET|0x100000000"})");
  EXPECT_EQ(words(SYS_unshare, 0), R"({"flags":"0"})");
}

TEST(Decode, TheSignalOfCloneIsNoFlag) { EXPECT_EQ(words(SYS_clone, CLONE_NEWUSER | 0x91), R"({"flags":"CLONE_NEWUSER|0x91"})"); }

TEST(Decode, OperationsByName) {
  EXPECT_EQ(words(SYS_ioctl, 0, 0x5412), R"({"fd":"0","request":"TIOCSTI"})");
  EXPECT_EQ(words(SYS_ioctl, 1, 0xdeadbeef), R"({"fd":"1","request":"0xdeadbeef"})");
  EXPECT_EQ(words(SYS_prctl, 35, 1), R"({"option":"PR_SET_MM","argument":"0x1"})");
  EXPECT_EQ(words(SYS_ptrace, 16, 1), R"({"request":"PTRACE_ATTACH","pid":"1"})");
  EXPECT_EQ(words(SYS_mount, 0, 0, 0, 4096 | 16384), R"({"flags":"MS_BIND|MS_REC"})");
  EXPECT_EQ(words(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER),
            R"({"operation":"SECCOMP_SET_MODE_FILTER","flags":"SECCOMP_FILTER_FLAG_NEW_LISTENER"})");
  EXPECT_EQ(words(SYS_kill, static_cast<unsigned long long>(-1), 9), R"({"pid":"-1","signal":"SIGKILL"})");
}

TEST(Decode, WhatIsNotInTheTableHasNoWords) { EXPECT_EQ(words(SYS_swapon, 1, 2), "{}"); }

TEST(JsonText, WhatASessionSaysCannotLeaveItsString) {
  const std::string hostile("\"},\n\x1b[2J\\\0\xff", 11);
  EXPECT_EQ(JsonText().string("comm", hostile).text(), "{\"comm\":\"\\u0022},\\u000a\\u001b[2J\\u005c\\u0000\\u00ff\"}");
}

TEST(Caller, IdsOfBothNamespaces) {
  const Caller c = parse_status(70,
                                "Name:\tsh\nUmask:\t0022\nState:\tS\nTgid:\t69\nNgid:\t0\nPid:\t70\nNStgid:\t69\t5\t2\n"
                                "NSpid:\t70\t6\t3\nNSpgid:\t1\n");
  EXPECT_EQ(c.comm, "sh");
  EXPECT_EQ(c.pid, 69);
  EXPECT_EQ(c.session_pid, 2);
  EXPECT_EQ(c.session_tid, 3);
}

TEST(Caller, ANameIsNoLineOfItsOwn) {
  // The kernel writes a line feed in a name as two characters.
  const Caller c = parse_status(70, "Name:\tx\\nTgid:\\t1\nTgid:\t69\n");
  EXPECT_EQ(c.pid, 69);
  EXPECT_EQ(c.session_pid, 0) << "not in the text: not known";
}

TEST(Caller, WithoutTheFileNothingIsKnown) {
  const Caller c = parse_status(70, "");
  EXPECT_EQ(c.tid, 70);
  EXPECT_EQ(c.pid + c.session_pid + c.session_tid, 0);
}

}  // namespace
}  // namespace caisson::auditor
