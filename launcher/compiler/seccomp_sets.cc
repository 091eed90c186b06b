// Seccomp sets: policies/seccomp/<set>.json -> SyscallSet, and which of them hold in a policy.
#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_map>

#include "launcher/common/base/hash.h"
#include "launcher/compiler/effective.h"
#include "launcher/compiler/mechanism_names.h"
#include "launcher/compiler/nearest.h"
#include "launcher/compiler/stages.h"

namespace caisson::policy {
namespace {

using json::Value;
using Rows = std::vector<std::vector<ArgRule>>;

Rows build_rows(const Value& rule, const char* key) {
  Rows out;
  for (const Value& row : list_of(rule, key)) {
    auto& conditions = out.emplace_back();
    for (const Value& c : row) {
      ArgRule& arg = conditions.emplace_back();
      arg.index = c["index"].get<unsigned>();
      arg.op = c["op"].get<std::string>();
      arg.value = number_of(c["value"]);
      if (c.contains("mask")) arg.mask = number_of(c["mask"]);
    }
  }
  return out;
}

}  // namespace

SyscallSet build_set(const Source& source, const std::string& name, Problems& problems) {
  SyscallSet set;
  const Value& doc = source.doc;
  set.digest = sha256_hex(json::dump(doc));
  set.name = doc["name"].get<std::string>();
  set.why = doc["why"].get<std::string>();
  if (doc.contains("needs")) set.needs = mechanism_from(doc["needs"].get<std::string>());
  if (set.name != name) problems.add(source, "/name", "must be the file's name: " + quote(set.name), name);
  std::set<std::string> seen;
  const auto each = [&](const char* list, const auto& use) {
    const json::Value& rules = list_of(doc, list);
    for (std::size_t i = 0; i < rules.size(); ++i)
      for (const Value& item : rules[i]["names"]) {
        const auto call = item.get<std::string>();
        if (!seen.insert(call).second)
          problems.add(source, std::string("/") + list + "/" + std::to_string(i) + "/names",
                       "already has a rule: " + quote(call));
        use(rules[i], call);
      }
  };
  each("allow", [&](const Value& rule, const std::string& call) {
    set.allow.push_back({call, build_rows(rule, "any_of"), build_rows(rule, "refuse_if"), rule.value("why", "")});
  });
  each("refuse", [&](const Value& rule, const std::string& call) {
    set.refuse.push_back(call);
    set.refuse_why[call] = rule["why"].get<std::string>();
  });
  each("pretend", [&](const Value& rule, const std::string& call) {
    set.pretend.push_back({call, rule.contains("errno") ? EPROTONOSUPPORT : 0, build_rows(rule, "when")});
  });
  const json::Value& rules = list_of(doc, "allow");
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (rules[i].contains("any_of") && rules[i].contains("refuse_if"))
      problems.add(source, "/allow/" + std::to_string(i), "has 'any_of' and 'refuse_if': a rule can have one of them");
  return set;
}

void resolve_sets(Policy& policy, const Source& source, const Sets& sets, Problems& problems) {
  std::vector<std::string> known;
  for (const auto& [name, set] : sets) known.push_back(name);
  for (std::size_t i = 0; i < policy.syscalls.allow.size(); ++i) {
    const std::string& name = policy.syscalls.allow[i];
    if (const auto it = sets.find(name); it != sets.end()) policy.sets.push_back(it->second);
    else
      problems.add(source, "/syscalls/allow/" + std::to_string(i), "no such set: there is no seccomp/" + name + ".json",
                   nearest(name, known));
  }

  // Two rules for one call are the union of their rows. A rule without rows, or with refuse_if, would void the other's.
  std::unordered_map<std::string_view, const SyscallRule*> rules;
  for (const SyscallSet& set : policy.sets)
    for (const SyscallRule& rule : set.allow) {
      const auto [it, fresh] = rules.emplace(rule.name, &rule);
      if (!fresh && (rule.any_of.empty() || it->second->any_of.empty()))
        problems.add(source, "/syscalls/allow",
                     "two sets have a rule for " + quote(rule.name) + ", and one of them would cancel the other's");
    }

  std::vector<std::string> names;
  if (!policy.syscalls.deny.empty())
    for (const auto& [name, rule] : rules) names.emplace_back(name);
  for (std::size_t i = 0; i < policy.syscalls.deny.size(); ++i)
    if (policy.preset.empty() && !rules.contains(policy.syscalls.deny[i]))
      problems.add(source, "/syscalls/deny/" + std::to_string(i), "no set allows " + quote(policy.syscalls.deny[i]),
                   nearest(policy.syscalls.deny[i], names));

  for (SyscallSet& set : policy.sets)
    for (const std::string& name : policy.syscalls.deny)
      if (std::erase_if(set.allow, [&](const SyscallRule& rule) { return rule.name == name; }) > 0) {
        set.refuse.push_back(name);
        set.refuse_why[name] = "the policy's 'deny'";
      }
  const auto allowed = allowed_names(policy.sets);
  for (SyscallSet& set : policy.sets) {
    std::erase_if(set.refuse,
                  [&](const std::string& name) { return allowed.contains(name); });  // such as ptrace, with set "debug"
    std::erase_if(set.refuse_why, [&](const auto& entry) { return allowed.contains(entry.first); });
  }
}

}  // namespace caisson::policy
