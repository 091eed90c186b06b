// Policies as bytes: the same when they come back, and no value that is none whatever the bytes are.
#include "launcher/compiler/frozen_write.h"

#include "launcher/compiler/canonical.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

// A policy with something in every member.
Policy full() {
  Directory directory;
  directory.write("base.json", R"({"description": "everything", "min_tier": "T3", "require": ["seccomp", "denial_audit"],
    "grants": [{"path": "/data", "source": "/srv/data", "access": "read-write", "required": false, "description": "it"}],
    "hide": ["/data/x"], "protect": [".git/hooks", ".vscode"], "protect_home": true,
    "files": {"/f": "text"}, "links": {"/l": "f"}, "devices": ["null", "tty"], "home": "private",
    "tmp": "private", "exec_writable": false, "home_path": "/h", "hostname": "other", "proc_shared_fallback": true,
    "network": "none", "limits": {"processes": 7}, "env": {"set": {"A": "b"}, "client_deny": ["LD_*"]},
    "why": {"/umask": "because"}, "syscalls": {"allow": ["io", "more"], "deny": ["write"]}, "umask": "077",
    "audit": {"paths": "observe", "max_bytes": 2000000, "on_full": "stderr"}})");
  directory.write("seccomp/more.json", R"({"name": "more", "why": "for the tests", "needs": "net_ns",
    "allow": [{"names": ["socket"], "any_of": [[{"index": 0, "op": "masked_eq", "value": 1, "mask": "0xffffffff"}]], "why": "so"},
              {"names": ["clone"], "refuse_if": [[{"index": 0, "op": "masked_eq", "value": 2, "mask": 2}]]}],
    "refuse": [{"names": ["bpf"], "why": "is refused here"}],
    "pretend": [{"names": ["chown"], "errno": "EPROTONOSUPPORT", "why": "is answered",
                 "when": [[{"index": 1, "op": "masked_eq", "value": 0, "mask": 1}]]}]})");
  return *directory.policy();
}

LoadResult loaded() {
  LoadResult out;
  out.policies["d"] = std::make_shared<const Policy>(full());
  return out;
}

std::string bytes_of(const Policy& policy) {
  Writer writer;
  writer(policy);
  return writer.bytes;
}

TEST(Frozen, EveryMemberComesBack) {
  const Policy before = *thaw(freeze(loaded()))->policies.at("d");
  const std::string bytes = bytes_of(before);
  Policy after;
  Reader reader(bytes);
  reader(after);
  ASSERT_TRUE(reader.whole());
  EXPECT_EQ(bytes_of(after), bytes);
  EXPECT_EQ(json::dump(to_json(after)), json::dump(to_json(before)));
  EXPECT_EQ(after.digest, before.digest);
  EXPECT_EQ(after.layers, before.layers);
  ASSERT_EQ(after.sets.size(), 2U);
  SyscallSet set = after.sets[1];
  const SyscallSet whole = full().sets[1];
  EXPECT_TRUE(set.allow.empty()) << "the launcher has them in bytes only";
  ASSERT_TRUE(thaw_rules(set));
  EXPECT_EQ(set.needs, Mechanism::net_ns);
  ASSERT_EQ(set.allow.size(), 2U);
  EXPECT_EQ(set.allow[0].any_of.at(0).at(0).mask, 0xffffffffU);
  EXPECT_EQ(set.allow[1].refuse_if.at(0).at(0).value, 2U);
  EXPECT_EQ(set.refuse, whole.refuse);
  EXPECT_EQ(set.refuse_why.at("bpf"), "is refused here");
  EXPECT_EQ(set.pretend.at(0).error, whole.pretend.at(0).error);
  EXPECT_EQ(after.audit.on_full, OnFull::stderr_);
  EXPECT_EQ(after.limits.processes, 7U);
  EXPECT_FALSE(after.grants.at(0).required);
}

// Attestations, logs and caches name policies by it: another one means that the canonical JSON of an unchanged file changed.
TEST(Frozen, ThePolicyWithEverythingHasTheDigestThatItAlwaysHad) {
  EXPECT_EQ(full().digest, "c9bf111cb41e28c1f769baf7fa53c8787286ec7c33e640b368d92db32d61f32a");
}

TEST(Frozen, ProblemsComeBackAsTheyWere) {
  LoadResult before;
  before.problems.push_back({"bash.json", 3, "/umask", "is wrong", "022"});
  const auto after = thaw(freeze(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->problems.at(0).text(), before.problems[0].text());
  EXPECT_TRUE(after->policies.empty());
}

TEST(Frozen, WhatIsNoAnswerIsRefused) {
  EXPECT_FALSE(thaw(""));
  EXPECT_FALSE(thaw("ready"));
  EXPECT_FALSE(thaw(std::string(kMaxFrozen + 1, 'x')));
  EXPECT_FALSE(thaw(freeze({}))) << "neither policies nor problems";
  LoadResult both = loaded();
  EXPECT_TRUE(thaw(freeze(both)));
  EXPECT_FALSE(thaw(freeze(both) + "x"));
  both.problems.push_back({"", 0, "", "and yet", ""});
  EXPECT_FALSE(thaw(freeze(both)));
  LoadResult many;
  many.problems.resize(kMaxProblems + 1);
  EXPECT_FALSE(thaw(freeze(many)));
}

// The digest is compared where the plan is made (compiler/answers.cc).
TEST(Frozen, APolicyOfAnotherDomainIsRefused) {
  const auto frozen = [](const std::string& domain) {
    LoadResult loaded;
    loaded.policies[domain] = std::make_shared<const Policy>(full());
    return freeze(loaded);
  };
  EXPECT_TRUE(thaw(frozen("d")));
  EXPECT_FALSE(thaw(frozen("other")));
}

TEST(Frozen, EveryTruncationIsRefused) {
  const LoadResult before = loaded();
  const std::string whole = freeze(before);
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(thaw(std::string_view(whole).substr(0, size))) << size;
}

// Of a byte that is another one the result is an error, or still one policy.
TEST(Frozen, EveryFlippedByteIsSurvived) {
  const std::string whole = freeze(loaded());
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      if (const auto back = thaw(changed)) {
        EXPECT_EQ(back->policies.at("d")->domain, "d") << at;
      }
    }
}

TEST(Frozen, NoValueIsOutsideItsType) {
  for (int byte = 2; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    bool truth = false;
    Reader booleans(bytes);
    booleans(truth);
    EXPECT_FALSE(booleans.good()) << byte;
    Mechanism mechanism{};
    Reader mechanisms(bytes);
    mechanisms(mechanism);
    EXPECT_EQ(mechanisms.good(), byte < kMechanismCount) << byte;
  }
  std::vector<std::string> many;
  Reader counts(std::string_view("\xff\xff\xff\xff\xff\xff\xff\x7f....", 12));
  counts(many);
  EXPECT_FALSE(counts.good());
  EXPECT_TRUE(many.empty());
}

}  // namespace
}  // namespace caisson::policy
