// The policies of this repository: they load, and they do not give what the catalogue of attacks must not find.
#include <algorithm>

#include "launcher/compiler/effective.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/fields.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/summary.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

struct Shipped : testing::Test {
  Shipped() : copy("/tmp/caisson-shipped-" + std::to_string(::getpid())) {
    // A copy: the checkout may belong to a user, which root's launcher refuses.
    std::filesystem::remove_all(copy);
    std::filesystem::copy(CAISSON_SOURCE_DIR "/policies", copy, std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(copy)) own(entry.path().string());
    own(copy);
    loaded = load_directory(copy);
    for (const Problem& problem : loaded.problems) ADD_FAILURE() << problem.text();
  }
  ~Shipped() override { std::filesystem::remove_all(copy); }
  static void own(const std::string& path) {
    std::filesystem::permissions(path, std::filesystem::perms::group_write | std::filesystem::perms::others_write,
                                 std::filesystem::perm_options::remove);
    if (::geteuid() == 0 && ::chown(path.c_str(), 0, 0) != 0) ADD_FAILURE() << path;
  }
  std::string copy;
  LoadResult loaded;
};

TEST_F(Shipped, TheDomainsAreThere) {
  for (const char* domain :
       {"bash", "shell", "run", "code", "jupyter", "nodejs", "file", "browser", "desktop", "code-server", "mcp", "document"})
    EXPECT_TRUE(loaded.policies.contains(domain)) << domain;
  EXPECT_FALSE(loaded.policies.contains("base"));
}

TEST_F(Shipped, TheyAreTheSameOnceTheyWereBytes) {
  const std::string bytes = freeze(loaded);
  const auto back = thaw(bytes);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->policies.size(), loaded.policies.size());
  EXPECT_EQ(freeze(*back), bytes);
}

TEST_F(Shipped, NothingSecretIsGranted) {
  for (const auto& [domain, policy] : loaded.policies)
    for (const char* secret :
         {"/etc/shadow", "/etc/caisson", "/etc/ssl/private", "/root", "/var/log", "/run", "/proc", "/sys", "/home", "/etc/ssh"})
      for (const Grant& grant : policy->grants)
        EXPECT_FALSE(secret == grant.path || std::string(secret).starts_with(grant.path + "/"))
            << domain << " " << secret << " " << grant.path;
}

TEST_F(Shipped, NoGrantIsWritableAndCaissonsOwnFilesAreHidden) {
  for (const auto& [domain, policy] : loaded.policies) {
    for (const Grant& grant : policy->grants)  // what is the workspace's own is no grant of the container
      EXPECT_TRUE(grant.access == Access::read || grant.source.find(':') != std::string::npos) << grant.path;
    EXPECT_NE(std::ranges::find(policy->hide, "/usr/lib/caisson"), policy->hide.end());
    for (const auto& [field, why] : policy->weaken)  // interpreters that the image's owner adds are read only, as all grants
      EXPECT_TRUE(field.starts_with("/limits/") || field.starts_with("/grants/opt/") || field == "/grants/tmp/.X11-unix" ||
                  (domain == "browser" && (field == "/grants/home/gem/Downloads" || field == "/syscalls/allow")))
          << domain << " " << field;
    EXPECT_TRUE(policy->disable.empty());
  }
}

// Each leaf that a file sets has its reason in the same file.
TEST_F(Shipped, EveryFieldHasItsWhy) {
  std::vector<std::string> files = {"base.json"};
  for (const auto& [domain, policy] : loaded.policies) files.push_back(domain + ".json");
  for (const std::string& preset : preset_names(copy)) files.push_back("presets/" + preset + ".json");
  for (const std::string& file : files) {
    const auto doc = *json::parse(read_text(copy + "/" + file));
    std::set<std::string> reasons;
    for (const auto& [field, why] : doc.value("why", json::Value::object()).items()) reasons.insert(field);
    for (const auto& entry : doc.value("weaken", json::Value::array())) reasons.insert(entry["field"].get<std::string>());
    EXPECT_FALSE(reasons.empty()) << file;
    for (const Field& field : policy_fields()) {
      const nlohmann::json::json_pointer where{std::string(field.pointer)};
      const bool leaf = !field.pointer.contains('*') && field.type != Type::object;
      const bool told =
          field.pointer == "/why" || field.pointer == "/weaken" || field.pointer == "/description" || field.pointer == "/extends";
      if (!leaf || told || !doc.contains(where)) continue;
      if (field.pointer == "/grants") {
        for (const auto& g : doc["grants"])
          EXPECT_TRUE(g.contains("why") || (file == "base.json" && g.contains("description")) || reasons.contains("/grants") ||
                      reasons.contains("/grants" + g["path"].get<std::string>()))
              << file;
      } else {
        EXPECT_TRUE(reasons.contains(std::string(field.pointer))) << file << " " << field.pointer;
      }
    }
  }
}

TEST_F(Shipped, APresetNeverLowersTheScoreButResearchWhichSaysWhy) {
  for (const std::string& preset : preset_names(copy)) {
    const auto with = load_directory(copy, {"", preset});
    for (const Problem& problem : with.problems) ADD_FAILURE() << problem.text();
    for (const auto& [domain, policy] : with.policies) {
      const int before = score(deductions(*loaded.policies.at(domain))), after = score(deductions(*policy));
      if (preset == "research") EXPECT_FALSE(policy->weaken.empty());
      else EXPECT_GT(after, before) << preset << " " << domain;
      EXPECT_EQ(policy->preset, preset);
      if (preset != "research") EXPECT_EQ(policy->network, Network::none) << preset << " " << domain;
    }
  }
}

TEST_F(Shipped, ThePresetsDifferInSubstance) {
  std::set<std::string> rows;
  for (const std::string& preset : preset_names(copy)) {
    const auto p = load_directory(copy, {"", preset}).policies.at("bash");
    rows.insert(std::string(tier_name(p->min_tier)) + " " + std::to_string(p->audit.keep_days) + " " +
                std::to_string(p->limits.session_seconds));
  }
  EXPECT_EQ(rows.size(), 4U);
}

TEST_F(Shipped, EveryDomainAndPresetHasExpectations) {
  std::set<std::string> covered;
  for (const auto& entry : std::filesystem::directory_iterator(copy + "/tests")) {
    const auto doc = *json::parse(read_text(entry.path().string()));
    covered.insert(doc.contains("preset") ? "preset " + doc["preset"].get<std::string>() : doc["domain"].get<std::string>());
  }
  for (const auto& [domain, policy] : loaded.policies) EXPECT_TRUE(covered.contains(domain)) << domain;
  for (const std::string& preset : preset_names(copy)) EXPECT_TRUE(covered.contains("preset " + preset)) << preset;
}

TEST_F(Shipped, TheTablesOfPresetsAreCurrent) {
  std::vector<std::pair<std::string, PolicySet>> presets{{"", loaded.policies}};
  for (const std::string& preset : preset_names(copy)) presets.emplace_back(preset, load_directory(copy, {"", preset}).policies);
  const std::string begin = "<!-- begin generated presets -->\n", end = "<!-- end generated presets -->";
  const std::string path = CAISSON_SOURCE_DIR "/policies/README.md", now = presets_text(presets);
  std::string text = read_text(path);
  const auto from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const std::string is = text.substr(from + begin.size(), to - from - begin.size());
  if (std::getenv("CAISSON_UPDATE") != nullptr) {
    text.replace(from + begin.size(), is.size(), now);
    std::ofstream(path) << text;
  } else {
    EXPECT_EQ(is, now) << "CAISSON_UPDATE=1 unit_policy rewrites it";
  }
}

TEST_F(Shipped, LandlockAloneCanExpressThem) {
  for (const auto& [domain, policy] : loaded.policies) EXPECT_TRUE(landlock_conflicts(*policy).empty()) << domain;
}

TEST_F(Shipped, DangerousCallsAreInNoSetOrRefused) {
  const Policy& policy = *loaded.policies.at("bash");
  std::set<std::string> allowed, refused;
  for (const SyscallSet& set : policy.sets) {
    for (const SyscallRule& rule : set.allow) allowed.insert(rule.name);
    refused.insert(set.refuse.begin(), set.refuse.end());
  }
  for (const char* name : {"unshare",
                           "setns",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "chroot",
                           "move_mount",
                           "open_tree",
                           "fsopen",
                           "mount_setattr",
                           "bpf",
                           "perf_event_open",
                           "userfaultfd",
                           "io_uring_setup",
                           "io_uring_enter",
                           "io_uring_register",
                           "keyctl",
                           "add_key",
                           "request_key",
                           "ptrace",
                           "process_vm_readv",
                           "process_vm_writev",
                           "kcmp",
                           "kexec_load",
                           "kexec_file_load",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "swapon",
                           "swapoff",
                           "reboot",
                           "acct",
                           "quotactl",
                           "syslog",
                           "iopl",
                           "ioperm",
                           "modify_ldt",
                           "memfd_secret",
                           "fanotify_init",
                           "open_by_handle_at",
                           "lookup_dcookie",
                           "vmsplice",
                           "move_pages",
                           "mbind",
                           "migrate_pages",
                           "pidfd_getfd",
                           "nfsservctl",
                           "process_madvise",
                           "process_mrelease",
                           "sethostname",
                           "settimeofday"}) {
    EXPECT_FALSE(allowed.contains(name)) << name;
    EXPECT_TRUE(refused.contains(name)) << name;
  }
  EXPECT_FALSE(allowed.contains("clone3") || refused.contains("clone3"));  // ENOSYS: the C library falls back to clone
}

// What a rule says about a call, as the kernel's filter would decide.
bool allows(const Policy& policy, const std::string& name, std::array<std::uint64_t, 6> args) {
  const auto holds = [&](const std::vector<ArgRule>& row) {
    return std::ranges::all_of(row,
                               [&](const ArgRule& c) { return c.op == "masked_eq" && (args.at(c.index) & c.mask) == c.value; });
  };
  for (const SyscallSet& set : policy.sets)
    for (const SyscallRule& rule : set.allow)
      if (rule.name == name && !std::ranges::any_of(rule.refuse_if, holds) &&
          (rule.any_of.empty() || std::ranges::any_of(rule.any_of, holds)))
        return true;
  return false;
}
constexpr std::uint64_t kGarbage = 0xdeadbeef00000000;  // the kernel cuts it off: it must not change the answer

TEST_F(Shipped, IoctlRefusesTypingIntoTerminals) {
  const Policy& policy = *loaded.policies.at("shell");
  for (const std::uint64_t request : {0x5412U, 0x541cU, 0x541dU, 0x5423U, 0x40086602U}) {
    EXPECT_FALSE(allows(policy, "ioctl", {0, request}));
    EXPECT_FALSE(allows(policy, "ioctl", {0, request | kGarbage}));
  }
  EXPECT_TRUE(allows(policy, "ioctl", {0, 0x5401}));
}

TEST_F(Shipped, CloneMakesNoNamespaces) {
  const Policy& policy = *loaded.policies.at("bash");
  EXPECT_TRUE(allows(policy, "clone", {0x3d0f00}));   // pthread_create
  EXPECT_TRUE(allows(policy, "clone", {0x1200011}));  // fork
  for (const std::uint64_t flag : {0x10000000U, 0x20000U, 0x20000000U, 0x40000000U, 0x8000000U, 0x4000000U, 0x2000000U}) {
    EXPECT_FALSE(allows(policy, "clone", {flag | 17}));
    EXPECT_FALSE(allows(policy, "clone", {flag | 17 | kGarbage}));
  }
}

TEST_F(Shipped, SocketsAreUnixInternetAndRouteOnly) {
  const Policy& policy = *loaded.policies.at("bash");
  const auto socket = [&](std::uint64_t family, std::uint64_t type, std::uint64_t protocol) {
    return allows(policy, "socket", {family, type, protocol});
  };
  EXPECT_TRUE(socket(1, 1 | 02000000, 0));
  EXPECT_TRUE(socket(2, 1 | 04000, 6));
  EXPECT_TRUE(socket(10, 2, 17));
  EXPECT_TRUE(socket(16, 3 | 02000000, 0));
  EXPECT_FALSE(socket(2, 1, 262));  // MPTCP
  EXPECT_FALSE(socket(2, 1, 262 | kGarbage));
  EXPECT_FALSE(socket(2, 3, 1));    // raw
  EXPECT_FALSE(socket(2, 2, 1));    // ping
  EXPECT_FALSE(socket(2, 1, 132));  // SCTP
  EXPECT_FALSE(socket(16, 3, 9));   // audit
  for (const std::uint64_t family :
       {38U, 40U, 17U, 15U, 21U, 30U, 44U, 31U, 29U, 39U, 43U, 42U, 33U}) {  // ALG, VSOCK, PACKET, KEY, …
    EXPECT_FALSE(socket(family, 1, 0));
    EXPECT_FALSE(socket(family | kGarbage, 5, 0));
  }
}

TEST_F(Shipped, OtherArguments) {
  const Policy& policy = *loaded.policies.at("bash");
  EXPECT_TRUE(allows(policy, "personality", {0xffffffff}));
  EXPECT_FALSE(allows(policy, "personality", {0x40000}));
  EXPECT_FALSE(allows(policy, "personality", {0x400000 | kGarbage}));
  EXPECT_TRUE(allows(policy, "prctl", {15}));
  EXPECT_FALSE(allows(policy, "prctl", {59}));
  EXPECT_FALSE(allows(policy, "prctl", {35 | kGarbage}));
  EXPECT_FALSE(allows(policy, "sendto", {0, 0, 0, 0x20000000}));
  EXPECT_TRUE(allows(policy, "sendto", {0, 0, 0, 0x4000}));
  EXPECT_FALSE(allows(policy, "setuid", {0}));
  EXPECT_FALSE(allows(policy, "setuid", {kGarbage}));
  EXPECT_TRUE(allows(policy, "setresuid", {0xffffffff, 1000, 0xffffffff}));
  EXPECT_TRUE(allows(policy, "mknodat", {0, 0, 0x11a4}));   // a FIFO
  EXPECT_FALSE(allows(policy, "mknodat", {0, 0, 0x21a4}));  // a character device
  EXPECT_FALSE(allows(policy, "seccomp", {1, 8}));
  EXPECT_TRUE(allows(policy, "seccomp", {1, 1}));
}

TEST_F(Shipped, Flaw14LimitsAreTheCallersOwnAndTheFirstProcessIsNotTuned) {
  for (const auto& [domain, policy] : loaded.policies) {
    EXPECT_TRUE(allows(*policy, "prlimit64", {0})) << domain;
    EXPECT_TRUE(allows(*policy, "prlimit64", {kGarbage})) << domain;
    for (const std::uint64_t pid : {1U, 2U, 4711U, 0xffffffffU}) {
      EXPECT_FALSE(allows(*policy, "prlimit64", {pid})) << domain;
      EXPECT_FALSE(allows(*policy, "prlimit64", {pid | kGarbage})) << domain;
    }
    for (const char* name : {"sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_setattr"}) {
      EXPECT_TRUE(allows(*policy, name, {0})) << domain;
      EXPECT_TRUE(allows(*policy, name, {4711})) << domain << ": a thread's own number";
      EXPECT_FALSE(allows(*policy, name, {1})) << domain;
      EXPECT_FALSE(allows(*policy, name, {1 | kGarbage})) << domain;
    }
    // Which kinds there are: a process, a group, a user.
    for (const auto& [name, first] : {std::pair("setpriority", 0U), std::pair("ioprio_set", 1U)}) {
      for (const std::uint64_t kind : {first, first + 1}) {
        EXPECT_TRUE(allows(*policy, name, {kind, 0})) << domain;
        EXPECT_TRUE(allows(*policy, name, {kind, 4711})) << domain;
        EXPECT_FALSE(allows(*policy, name, {kind, 1})) << domain;
        EXPECT_FALSE(allows(*policy, name, {kind | kGarbage, 1 | kGarbage})) << domain;
      }
      for (const std::uint64_t uid : {0U, 1U, 1000U}) EXPECT_FALSE(allows(*policy, name, {first + 2, uid})) << domain;
    }
  }
}

TEST_F(Shipped, WithoutNamespacesThereAreNoInternetSocketsAndNoSystemVIpc) {
  Policy policy = *loaded.policies.at("bash");
  policy.sets = effective_sets(policy, {Mechanism::seccomp});
  EXPECT_FALSE(allows(policy, "socket", {2, 1, 0}));
  EXPECT_TRUE(allows(policy, "socket", {1, 1, 0}));
  EXPECT_FALSE(allows(policy, "shmget", {}));
  EXPECT_FALSE(allows(policy, "mq_open", {}));
}

TEST_F(Shipped, EverySetOfTheDirectoryIsGood) {
  EXPECT_GE(std::distance(std::filesystem::directory_iterator(copy + "/seccomp"), {}), 15);
}

TEST_F(Shipped, ExplainSaysWhatWhyAndWhatIsMissing) {
  const auto e = explain(*loaded.policies.at("bash"));
  EXPECT_EQ(e["limits"]["processes"]["value"], 512);
  EXPECT_TRUE(e["limits"]["processes"].contains("why"));
  EXPECT_EQ(e["network"]["value"], "loopback");
  EXPECT_EQ(e["audit"]["on_full"]["value"], "stop");
  EXPECT_EQ(e["audit"]["keep_days"]["meaning"], find_field(policy_fields(), "/audit/keep_days")->doc);
  EXPECT_EQ(e["grants"].back()["path"], "/var/cache/fontconfig");
  EXPECT_FALSE(e["posture"].empty());
  EXPECT_TRUE(e["syscalls"]["sets"][0]["allowed"].get<int>() > 10);
  const std::string text = explain_text(*loaded.policies.at("run"));
  for (const char* part : {"domain run", "made of base.json run.json", "/usr ", "writes", "denied to requests", "posture",
                           "outlives it", "is recorded", "sockets-inet", "needs net_ns", "score ", "/network: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Landlock, NamesWhatItCannotTakeAway) {
  Directory dir;
  dir.write("base.json",
            R"({"grants": [{"path": "/data", "access": "read-write", "execute": true}, {"path": "/data/fixed", "execute": true},
    {"path": "/data/more", "access": "read-write"}, {"path": "/home/gem/x", "execute": true}], "syscalls": {"allow": ["io"]}})");
  Texts found;
  for (const Problem& problem : landlock_conflicts(*dir.policy())) found.push_back(problem.text());
  const std::string end = ": Landlock cannot take that away, it needs a mount namespace (tier T2)";
  EXPECT_EQ(found, (Texts{"d /grants/1/path: '/data/fixed' is read-only inside '/data', which is writable" + end,
                          "d /grants/2/path: '/data/more' is not executable inside '/data', which is executable" + end,
                          "d /grants/3/path: '/home/gem/x' is read-only inside '/home/gem', which is writable" + end}));
}

}  // namespace
}  // namespace caisson::policy
