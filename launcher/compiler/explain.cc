#include "launcher/compiler/explain.h"

#include <algorithm>

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/effective.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/stages.h"
#include "launcher/compiler/summary.h"

namespace caisson::policy {
namespace {

using json::Value;

Value set_summary(const SyscallSet& set) {
  const auto conditional =
      std::ranges::count_if(set.allow, [](const SyscallRule& r) { return !r.any_of.empty() || !r.refuse_if.empty(); });
  Value out{{"name", set.name},
            {"why", set.why},
            {"allowed", set.allow.size()},
            {"with_conditions", conditional},
            {"refused", set.refuse.size()}};
  if (set.needs) out["needs"] = mechanism_name(*set.needs);
  return out;
}

std::string network(const Policy& p) {
  const std::string outside =
      "by the door, which is the workspace's only way out. No session in tiers T0 and T1; private sessions have no way out.";
  switch (p.network) {
    case Network::none:
      return "No internet sockets at all.";
    case Network::loopback:
      return "Network: loopback of the workspace only; in tiers T0 and T1 no internet sockets.";
    case Network::allowlist:
      return "Network: loopback of the workspace, and what `egress` allows, " + outside;
    case Network::monitor:
      return "OPEN TO THE OUTSIDE: every public address that `egress` does not deny, each connection on record, " + outside;
    case Network::open:
      return "OPEN TO THE OUTSIDE: every public address that `egress` does not deny, " + outside;
  }
  return "";
}

// Each line is a fact that follows from the policy; what a tier takes away is said with it.
Value posture(const Policy& p) {
  Value out = Value::array();
  const auto writable = std::ranges::count(p.grants, Access::read_write, &Grant::access);
  out.push_back("A session sees only " + std::to_string(p.grants.size()) + " grants, home, /tmp, /proc and a minimal /dev.");
  if (p.home == Scope::read) out.push_back("The home is the workspace's, read-only but for the grants that are taken from it.");
  const std::string own =
      std::string(p.home != Scope::read ? "home, " : "") + (p.tmp != Scope::read ? "/tmp and " : "") + "/dev/shm";
  out.push_back(writable == 0 ? "Nothing outside " + own + " can be written."
                              : std::to_string(writable) + " grants can be written, besides " + own + ".");
  if (p.home == Scope::private_ && p.tmp == Scope::private_)
    out.push_back("Nothing that a session writes to home or /tmp outlives it.");
  else
    out.push_back("Sessions of one workspace share what the policy does not make private: home is " +
                  std::string(word(words(p.home), static_cast<std::size_t>(p.home))) + ", /tmp is " +
                  std::string(word(words(p.tmp), static_cast<std::size_t>(p.tmp))) + ".");
  out.push_back(network(p));
  if (!p.published_ports.empty())
    out.push_back(
        "OPEN WITHOUT A CREDENTIAL: the published ports of a workspace, to whoever reaches the API's port, while a session of "
        "this "
        "domain runs there. Any session of that workspace can be the one that listens.");
  if (!p.api.empty())
    out.push_back(
        "Programs of a session may use areas of the API for their own workspace. What they start there runs in the domains of "
        "these "
        "areas, by their policies.");
  if (p.proc_shared_fallback)
    out.push_back(
        "Where no fresh /proc can be mounted, number, name and command line of the container's other processes are visible.");
  if (!p.hide.empty())
    out.push_back("Hidden paths stay readable in tiers T0 and T1: Landlock cannot take away what a grant around them gives.");
  if (!p.protect.empty())
    out.push_back(std::string("The names in `protect` are read-only in writable grants") +
                  (p.protect_home ? " and in the home" : "; not in the home") +
                  ". No session starts in tiers T0 and T1. New files with such names are listed at the session's end.");
  out.push_back(
      "In tiers T0 and T1 a session can query names, sizes and times of files outside the grants and watch them for changes: "
      "Landlock does not cover stat and inotify.");
  if (p.audit.paths)
    out.push_back("Calls that name files are observed: they are slower, and refused paths are recorded as advice.");
  if (p.system_packages)
    out.push_back(
        "Sessions are root, without any capability, in a copy of the system that their workspace shares. They can replace "
        "programs that its other sessions run, but not those of the image or of other workspaces.");
  if (nests(p))
    out.push_back(
        "Programs may sandbox themselves in user, PID and network namespaces of their own. In these they have capabilities, "
        "which "
        "reach no mounts, netlink, netfilter, interfaces or /proc/sys. No session in tiers T0 and T1.");
  if (!p.audit.denials) out.push_back("Calls that a rule refuses leave no record in the audit log.");
  if (p.audit.on_full == OnFull::stderr_)
    out.push_back("When the disk is full, sessions continue; their records go to the launcher's standard error only.");
  if (p.disable.empty()) out.push_back("No mechanism is switched off.");
  for (const Mechanism m : p.disable) out.push_back("SWITCHED OFF: " + std::string(mechanism_name(m)) + ".");
  for (const Problem& conflict : landlock_conflicts(p)) out.push_back("No session in tiers T0 and T1: " + conflict.what + ".");
  return out;
}

}  // namespace

Value explain(const Policy& p) {
  Value out = to_json(p);
  out.erase("sets");
  out.erase("why");
  out["digest"] = p.digest;
  const auto explained = [&p](const Value& value, const std::string& field) {
    Value row{{"value", value}, {"meaning", find_field(policy_fields(), field)->doc}};
    if (const auto why = reason_of(p, field); !why.empty()) row["why"] = why;
    return row;
  };
  for (const Row& row : kRows) {
    const bool ordered = row.widens != Widens::made && row.widens != Widens::never && row.widens != Widens::grants;
    const bool list = row.pointer.starts_with("/env/") || row.pointer.starts_with("/syscalls/");  // as they stand
    if (!ordered || list) continue;
    const Value::json_pointer where(std::string(row.pointer));
    if (!out.contains(where) && row.pointer.starts_with("/egress")) continue;  // no way out
    Value& value = out[where];
    if (value.is_null()) value = Value::array();  // canonical JSON leaves out empty lists of ports and areas
    value = explained(value, std::string(row.pointer));
  }
  for (Value& grant : out["grants"])
    if (const auto it = p.weaken.find("/grants" + grant["path"].get<std::string>()); it != p.weaken.end())
      grant["why"] = it->second;
  out["syscalls"] = {{"sets", Value::array()}, {"denied", p.syscalls.deny}};
  for (const SyscallSet& set : p.sets) out["syscalls"]["sets"].push_back(set_summary(set));
  out["posture"] = posture(p);
  out["made_of"] = p.layers;
  for (const Fact& f : facts(p))
    out["facts"].push_back({{"topic", f.topic}, {"name", f.name}, {"value", f.value}, {"why", f.why}});
  out["score"] = score_json(to_json(p));
  return out;
}

std::string explain_text(const Policy& p) {
  std::string out =
      "domain " + p.domain + (p.description.empty() ? "" : ": " + p.description) + "\npolicy " + p.digest + "\nmade of";
  for (const std::string& layer : p.layers) out += " " + layer;
  out += "\n";
  std::string topic;
  for (const Fact& f : facts(p)) {
    if (f.topic != topic) out += "\n" + (topic = f.topic) + (f.topic == "uses" ? " at most\n" : "\n");
    std::string name = f.name;
    name.resize(std::max<std::size_t>(name.size(), 32), ' ');
    out += "  " + name + " " + f.value + (f.why.empty() ? "" : "  # " + f.why) + "\n";
  }
  out += "\nposture\n";
  for (const Value& line : posture(p)) out += "  - " + line.get<std::string>() + "\n";
  const auto taken = deductions(p);
  out += "\nscore " + std::to_string(score(taken)) + " of 100\n";
  for (const Deduction& d : taken) {
    std::string points = "-" + std::to_string(d.points);
    points.insert(0, points.size() < 5 ? 5 - points.size() : 0, ' ');
    out += points + "  " + d.field + ": " + d.reason + "\n";
  }
  return out;
}

}  // namespace caisson::policy
