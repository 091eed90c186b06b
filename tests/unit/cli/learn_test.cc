#include "launcher/cli/learn/propose.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace caisson::cli::learn {
namespace {

policy::Policy domain() {
  policy::Policy p;
  p.domain = "run";
  p.grants = {{"/etc/ssl/certs", "/etc/ssl/certs"}, {"/usr", "/usr", policy::Access::read, true}};
  p.files["/etc/passwd"] = "gem";
  return p;
}

std::vector<std::string> granted(const Proposal& proposal) {
  std::vector<std::string> out;
  for (const policy::Grant& g : proposal.grants)
    out.push_back(g.path + (g.access == policy::Access::read_write ? " rw" : " r") + (g.execute ? "x" : ""));
  return out;
}

Accesses seen(std::initializer_list<std::pair<const char*, unsigned>> paths) {
  Accesses out;
  for (const auto& [path, use] : paths) out.paths[path].done = use;
  return out;
}

using List = std::vector<std::string>;

TEST(Learn, WhatTheDomainHasIsNotProposed) {
  EXPECT_EQ(granted(propose(domain(), seen({{"/usr/bin/true", kExecuted | kRead},
                                            {"/etc/passwd", kRead},
                                            {"/home/gem/x", kWritten},
                                            {"/tmp/y", kWritten},
                                            {"/proc/self/maps", kRead},
                                            {"/dev/null", kWritten}}))),
            List{});
}

TEST(Learn, AFileIsGrantedAloneAndFilesOfOneDirectoryTogether) {
  EXPECT_EQ(granted(propose(domain(), seen({{"/srv/data/a", kRead}}))), List{"/srv/data/a r"});
  EXPECT_EQ(granted(propose(domain(), seen({{"/srv/data/a", kRead}, {"/srv/data/b", kRead}, {"/srv/data/c", kRead}}))),
            List{"/srv/data r"});
}

TEST(Learn, ADirectoryThatWasListedIsGranted) {
  Accesses a = seen({{"/srv/data", kListed}, {"/srv/data/a", kRead}});
  a.paths["/srv/data"].directory = true;
  EXPECT_EQ(granted(propose(domain(), a)), List{"/srv/data r"});
}

TEST(Learn, MakingAnEntryNeedsItsDirectory) {
  EXPECT_EQ(granted(propose(domain(), seen({{"/srv/data/out", kEntries}, {"/srv/data/out/tmp8f3a", kWritten}}))),
            List{"/srv/data/out rw"});
}

TEST(Learn, WritingToWhatMayOnlyBeReadWidens) {
  EXPECT_EQ(granted(propose(domain(), seen({{"/etc/ssl/certs/new.pem", kWritten}}))), List{"/etc/ssl/certs/new.pem rw"});
}

TEST(Learn, RunningNeedsExecute) {
  EXPECT_EQ(granted(propose(domain(), seen({{"/opt/tool/bin/x", kExecuted | kRead}, {"/etc/ssl/certs/x.so", kExecuted}}))),
            (List{"/etc/ssl/certs/x.so rx", "/opt/tool/bin/x rx"}));
}

TEST(Learn, BroadDirectoriesAreNeverGranted) {
  Accesses a;
  for (const char* directory : {"/", "/etc", "/home", "/srv", "/home/alice", "/root", "/var/lib"}) {
    a.paths[directory].done = kListed | kEntries;
    a.paths[directory].directory = true;
    for (const char* name : {"a", "b", "c", "d"})
      a.paths[std::string(directory == std::string("/") ? "" : directory) + "/" + name].done = kRead;
  }
  const Proposal p = propose(domain(), a);
  for (const policy::Grant& g : p.grants) EXPECT_FALSE(is_broad(domain(), g.path)) << g.path;
  EXPECT_GE(p.grants.size(), 24U);
  EXPECT_TRUE(std::ranges::any_of(p.notes, [](const std::string& n) { return n.contains("/etc itself"); }));
}

TEST(Learn, ManyGrantsBelowOneDirectoryBecomeOne) {
  Accesses a;
  for (char c = 'a'; c <= 'j'; ++c) a.paths[std::string("/srv/data/") + c + "/file"].done = kRead;
  EXPECT_EQ(granted(propose(domain(), a)), List{"/srv/data r"});
}

TEST(Learn, ThatADirectoryIsThereNeedsNoGrant) {
  Accesses a = seen({{"/srv/data", kLooked}});
  a.paths["/srv/data"].directory = true;
  EXPECT_EQ(granted(propose(domain(), a)), List{});
}

TEST(Learn, WhatFailedIsNotGranted) {
  Accesses a;
  a.paths["/srv/secret"].refused = kRead;
  const Proposal p = propose(domain(), a);
  EXPECT_EQ(granted(p), List{});
  EXPECT_TRUE(std::ranges::any_of(p.notes, [](const std::string& n) { return n.contains("/srv/secret"); }));
}

TEST(Learn, LimitsAreOnlyLowered) {
  Accesses a;
  a.peaks.processes = 5;
  a.peaks.memory_bytes = 8ULL << 30;
  const Proposal p = propose(domain(), a);
  EXPECT_EQ(p.limits.at("processes"), 16U);
  EXPECT_FALSE(p.limits.contains("memory_bytes"));
  EXPECT_FALSE(p.limits.contains("open_files")) << "nothing was seen of it";
}

TEST(Learn, NoNetworkWhereNoneWasUsed) {
  Accesses a;
  EXPECT_TRUE(propose(domain(), a).network_none);
  a.inet = true;
  EXPECT_FALSE(propose(domain(), a).network_none);
}

TEST(Learn, SetsWithoutAnyUsedCallAreLeftOut) {
  policy::Policy p = domain();
  for (const auto& [set, call] :
       {std::pair("files", "openat"), std::pair("sockets-inet", "socket"), std::pair("ipc-sysv", "shmget")}) {
    policy::SyscallSet one;
    one.name = set;
    one.allow.emplace_back().name = call;
    p.sets.push_back(std::move(one));
  }
  Accesses a;
  EXPECT_EQ(propose(p, a).sets, List()) << "nothing is known of its calls";
  a.used_calls = {SYS_shmget};
  EXPECT_EQ(propose(p, a).sets, (List{"files", "ipc-sysv"})) << "every session needs files";
  EXPECT_EQ(policy_file(p, propose(p, a), "x")["syscalls"]["allow"], (json::Value{"files", "ipc-sysv"}));
  EXPECT_NE(difference(p, propose(p, a)).find("- syscalls/allow sockets-inet\n"), std::string::npos);
  a.used_calls.insert(SYS_socket);
  EXPECT_EQ(propose(p, a).sets, List()) << "all of them";
}

TEST(Learn, TheFileNamesItsReasons) {
  const Proposal p = propose(domain(), seen({{"/srv/data/a", kRead}}));
  const json::Value file = policy_file(domain(), p, "cat /srv/data/a");
  EXPECT_EQ(file["extends"], "run");
  ASSERT_EQ(file["weaken"].size(), 1U);
  EXPECT_EQ(file["weaken"][0]["field"], "/grants/srv/data/a");
  EXPECT_EQ(file["weaken"][0]["why"], "read by: cat /srv/data/a");
}

TEST(Learn, WhatIsLostWorkedBefore) {
  Accesses before = seen({{"/srv/a", kRead}, {"/srv/b", kRead}}), again;
  again.paths["/srv/a"].missing = kRead;
  again.paths["/srv/b"].refused = kRead;
  again.paths["/srv/never"].missing = kRead;
  again.refused_calls["mount"] = 2;
  EXPECT_EQ(lost(before, again), (List{"not there: /srv/a", "refused: /srv/b", "refused: system call mount, 2 times"}));
}

}  // namespace
}  // namespace caisson::cli::learn
