#include "launcher/seal/profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "launcher/common/base/json.h"

namespace caisson::seal {
namespace {

json::Value agent() {
  std::stringstream text;
  text << std::ifstream(CAISSON_SOURCE_DIR "/launcher/seal/services/agent.json").rdbuf();
  return *json::parse(text.str());
}

std::string refusal(const json::Value& doc) {
  const auto parsed = parse_profile("agent", json::dump(doc));
  return parsed ? "" : parsed.error().text();
}

bool allows(const Profile& profile, std::string_view call) {
  return std::ranges::any_of(profile.calls.allow, [&](const policy::SyscallRule& rule) { return rule.name == call; });
}

TEST(Profile, TheAgentGetsNoCallThatLeavesItsWalls) {
  const auto profile = profile_of("agent");
  ASSERT_TRUE(profile) << profile.error().text();
  for (const char* call : {"execve",
                           "execveat",
                           "fork",
                           "vfork",
                           "clone",
                           "clone3",
                           "ptrace",
                           "connect",
                           "kill",
                           "tkill",
                           "socketpair",
                           "unshare",
                           "setns",
                           "mount",
                           "bpf",
                           "keyctl",
                           "process_vm_readv",
                           "pidfd_open",
                           "pidfd_getfd",
                           "io_uring_setup",
                           "unlink",
                           "rename",
                           "openat2",
                           "memfd_create",
                           "setuid",
                           "socket",
                           "bind",
                           "listen",
                           "sendmmsg"})
    EXPECT_FALSE(allows(*profile, call)) << call;
  for (const char* call : {"read", "write", "accept4", "sendmsg", "recvmsg", "exit_group"})
    EXPECT_TRUE(allows(*profile, call)) << call;
  EXPECT_EQ(profile->data_bytes, 1U << 30);
  EXPECT_EQ(profile->write, std::vector<std::string>{"/dev/null"});
}

// A listening socket that is shut down could be connected by a first send with MSG_FASTOPEN.
TEST(Profile, NothingIsSentThatConnects) {
  const auto profile = profile_of("agent");
  for (const auto& [call, index] : {std::pair("sendto", 3U), std::pair("sendmsg", 2U)}) {
    const auto rule = std::ranges::find(profile->calls.allow, call, &policy::SyscallRule::name);
    ASSERT_NE(rule, profile->calls.allow.end()) << call;
    ASSERT_EQ(rule->refuse_if.size(), 1U);
    EXPECT_EQ(rule->refuse_if[0][0].index, index);
    EXPECT_EQ(rule->refuse_if[0][0].value, 0x20000000U);  // MSG_FASTOPEN of include/linux/socket.h
  }
}

bool allows_conditionally(const Profile& profile, std::string_view call) {
  const auto rule = std::ranges::find(profile.calls.allow, call, &policy::SyscallRule::name);
  return rule != profile.calls.allow.end() && (!rule->any_of.empty() || !rule->refuse_if.empty());
}

// What the two processes of egress may: neither starts anything, and what one lacks the other has.
TEST(Profile, TheDoorMakesNoSocketAndTheDialerAcceptsNone) {
  const auto door = profile_of("door"), dialer = profile_of("dialer");
  ASSERT_TRUE(door && dialer);
  for (const char* call :
       {"execve",      "execveat",       "fork",    "vfork",        "clone",  "clone3",  "ptrace",           "kill",
        "tkill",       "unshare",        "setns",   "mount",        "bpf",    "keyctl",  "process_vm_readv", "pidfd_open",
        "pidfd_getfd", "io_uring_setup", "openat2", "memfd_create", "setuid", "bind",    "listen",           "ioctl",
        "prctl",       "prlimit64",      "rename",  "unlink",       "mkdir",  "sendmmsg"})
    EXPECT_FALSE(allows(*door, call) || allows(*dialer, call)) << call;
  for (const char* call : {"socket", "socketpair", "connect", "open", "openat", "newfstatat", "readlink"})
    EXPECT_FALSE(allows(*door, call)) << call;
  for (const char* call : {"accept", "accept4", "splice", "pipe2"}) EXPECT_FALSE(allows(*dialer, call)) << call;
  for (const char* call : {"accept4", "splice", "pipe2", "recvmsg"}) EXPECT_TRUE(allows(*door, call)) << call;
  for (const char* call : {"connect", "recvmsg", "sendmsg"}) EXPECT_TRUE(allows(*dialer, call)) << call;
  for (const char* call : {"sendto", "sendmsg", "mmap", "mprotect"}) EXPECT_TRUE(allows_conditionally(*door, call)) << call;
  for (const char* call : {"socket", "socketpair", "openat", "mmap", "mprotect"})
    EXPECT_TRUE(allows_conditionally(*dialer, call)) << call;
}

// It has secrets: all that it can do with them is to talk over what it was handed.
TEST(Profile, TheOpenerMakesNoSocketAndOpensNoFile) {
  const auto opener = profile_of("opener");
  ASSERT_TRUE(opener) << opener.error().text();
  for (const char* call :
       {"execve",       "fork",   "clone",   "clone3", "ptrace", "kill",    "socketpair", "setns",    "mount",
        "bpf",          "socket", "connect", "accept", "bind",   "accept4", "open",       "openat",   "readlink",
        "memfd_create", "splice", "pipe2",   "listen", "ioctl",  "prctl",   "setuid",     "sendmmsg", "pidfd_getfd"})
    EXPECT_FALSE(allows(*opener, call)) << call;
  for (const char* call : {"sendto", "sendmsg", "mmap", "mprotect"}) EXPECT_TRUE(allows_conditionally(*opener, call)) << call;
  EXPECT_TRUE(allows(*opener, "recvmsg") && allows(*opener, "getrandom"));
}

TEST(Profile, ThreadsOfItsOwnAloneAreSignalled) {
  const auto profile = profile_of("agent");
  const auto rule = std::ranges::find(profile->calls.allow, "tgkill", &policy::SyscallRule::name);
  ASSERT_NE(rule, profile->calls.allow.end());
  ASSERT_EQ(rule->any_of.size(), 1U);
  EXPECT_EQ(rule->any_of[0][0].value, static_cast<std::uint64_t>(::getpid()));
}

TEST(Profile, AServiceWithoutAProfileDoesNotStart) {
  EXPECT_EQ(profile_of("egress").error().code, Code::not_found);
  EXPECT_EQ(profile_of("").error().code, Code::not_found);
}

TEST(Profile, WhatIsMissingUnknownOrWrongIsRefusedAndNamed) {
  EXPECT_EQ(refusal(agent()), "");
  for (const char* member : {"calls", "data_bytes", "execute", "read", "write"}) {
    json::Value without = agent();
    without.erase(member);
    EXPECT_TRUE(refusal(without).contains(std::string("no member '") + member + "'")) << refusal(without);
  }
  json::Value doc = agent();
  doc["capabilities"] = json::Value::array({"CAP_NET_ADMIN"});
  EXPECT_TRUE(refusal(doc).contains("unknown member 'capabilities'")) << refusal(doc);
  for (const char* path : {"etc/passwd", "/etc/../root", "", "/a//b", "/a/"}) {
    doc = agent();
    doc["read"].push_back(path);
    EXPECT_TRUE(refusal(doc).contains("'read' has what is no absolute path")) << path << refusal(doc);
  }
  for (const json::Value& bytes :
       {json::Value(0), json::Value(-1), json::Value("1073741824"), json::Value(1.5), json::Value(1LL << 41)}) {
    doc = agent();
    doc["data_bytes"] = bytes;
    EXPECT_TRUE(refusal(doc).contains("'data_bytes' must be a number")) << json::dump(bytes);
  }
  doc = agent();
  doc["calls"]["allow"][0]["names"].push_back("tgkill");
  EXPECT_TRUE(refusal(doc).contains("tgkill")) << refusal(doc);
  doc = agent();
  doc["calls"]["allow"][0]["name"] = "read";
  EXPECT_NE(refusal(doc), "") << "a rule with a member that no set has";
  doc = agent();
  doc["calls"]["name"] = "other";
  EXPECT_NE(refusal(doc), "");
  EXPECT_FALSE(parse_profile("agent", "[]"));
  EXPECT_FALSE(parse_profile("agent", "{"));
}

}  // namespace
}  // namespace caisson::seal
