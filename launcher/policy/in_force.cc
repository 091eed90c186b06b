// What holds of a policy where it is in force, and the canonical JSON that its digest is made of.
#include "launcher/policy/in_force.h"

#include <algorithm>

#include "launcher/base/json.h"
#include "launcher/policy/text_checks.h"

namespace caisson::policy {
namespace {

using json::Value;

std::string_view scope_name(Scope scope) { return scope == Scope::private_ ? "private" : "workspace"; }
Value mechanism_names(const std::set<Mechanism>& mechanisms) {
  Value out = Value::array();
  for (const Mechanism m : mechanisms) out.push_back(mechanism_name(m));
  return out;
}

Value grant_json(const Grant& g) {
  Value out{{"path", g.path},
            {"access", g.access == Access::read ? "read" : "read-write"},
            {"execute", g.execute},
            {"required", g.required}};
  if (g.source != g.path) out["source"] = g.source;
  if (g.mounted) out["mounted"] = true;
  if (!g.description.empty()) out["description"] = g.description;
  return out;
}

Value audit_json(const Audit& a) {
  return {{"denials", a.denials},
          {"paths", a.paths ? "observe" : "off"},
          {"max_bytes", a.max_bytes},
          {"keep_days", a.keep_days},
          {"on_full", a.on_full == OnFull::stop ? "stop" : "stderr"}};
}

}  // namespace

Value to_json(const Policy& p) {
  Value out{{"domain", p.domain},
            {"description", p.description},
            {"why", p.why},
            {"weaken", p.weaken},
            {"min_tier", tier_name(p.min_tier)},
            {"require", mechanism_names(p.require)},
            {"disable", mechanism_names(p.disable)},
            {"hide", p.hide},
            {"protect", p.protect},
            {"protect_home", p.protect_home},
            {"files", p.files},
            {"links", p.links},
            {"devices", p.devices},
            {"home", scope_name(p.home)},
            {"home_path", p.home_path},
            {"tmp", scope_name(p.tmp)},
            {"exec_writable", p.exec_writable},
            {"system_packages", p.system_packages},
            {"hostname", p.hostname},
            {"proc_shared_fallback", p.proc_shared_fallback},
            {"network", p.network == Network::none ? "none" : "loopback"},
            {"umask", octal_text(p.umask)},
            {"env", {{"set", p.env.set}, {"client_deny", p.env.client_deny}}},
            {"syscalls", {{"allow", p.syscalls.allow}, {"deny", p.syscalls.deny}}}};
  if (!p.preset.empty()) out["preset"] = p.preset;
  out["grants"] = Value::array();
  for (const Grant& grant : p.grants) out["grants"].push_back(grant_json(grant));
  out["audit"] = audit_json(p.audit);
  for (const LimitRow& row : kLimits) out["limits"][row.name] = p.limits.*row.member;
  for (const SyscallSet& set : p.sets) out["sets"][set.name] = set.digest;  // what they say is in the files
  return out;
}

std::string octal_text(unsigned value) {
  return {static_cast<char>('0' + (value >> 6 & 7)), static_cast<char>('0' + (value >> 3 & 7)),
          static_cast<char>('0' + (value & 7))};
}

std::string Problem::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (!pointer.empty()) out += (out.empty() ? "" : " ") + pointer;
  if (!out.empty()) out += ": ";
  out += what;
  if (!meant.empty()) out += "; meant " + quote(meant) + "?";
  return out;
}

Grant build_grant(const Value& object) {
  Grant grant;
  grant.path = object["path"].get<std::string>();
  grant.source = object.value("source", grant.path);
  grant.access = object.value("access", "read") == "read" ? Access::read : Access::read_write;
  grant.execute = object.value("execute", false);
  grant.required = object.value("required", true);
  grant.description = object.value("description", "");
  if (const auto why = object.value("why", ""); !why.empty()) grant.description += (grant.description.empty() ? "" : ": ") + why;
  return grant;
}

const Grant* ruling_grant(const std::vector<Grant>& grants, std::string_view path) {
  const Grant* best = nullptr;
  for (const Grant& grant : grants)
    if (inside(path, grant.path) && (best == nullptr || grant.path.size() > best->path.size())) best = &grant;
  return best;
}

bool no_more_than(const Grant& inner, const Grant& outer) {
  return (inner.access == Access::read || outer.access == Access::read_write) && (!inner.execute || outer.execute) &&
         inner.source == outer.source + inner.path.substr(outer.path.size());
}

std::vector<Grant> own_places(const Policy& policy) {
  std::vector<Grant> out;
  for (const std::string& path : {policy.home_path, std::string("/tmp")})
    out.push_back({.path = path, .source = path, .access = Access::read_write, .execute = policy.exec_writable});
  return out;
}

std::vector<Problem> landlock_conflicts(const Policy& policy) {
  std::vector<Problem> out;
  std::vector<Grant> around = policy.grants;
  std::ranges::copy(own_places(policy), std::back_inserter(around));
  for (const Grant& inner : policy.grants)
    for (const Grant& outer : around) {
      if (inner.path == outer.path || !inside(inner.path, outer.path)) continue;
      // A mount of the operator's is read-only, or noexec, for the launcher as well: nothing has to be taken away.
      const bool writes = !inner.mounted && outer.access == Access::read_write && inner.access == Access::read;
      const bool runs = !inner.mounted && outer.execute && !inner.execute;
      if (!writes && !runs) continue;
      const auto index = std::ranges::find(policy.grants, inner.path, &Grant::path) - policy.grants.begin();
      out.push_back({policy.domain, 0, "/grants/" + std::to_string(index) + "/path",
                     quote(inner.path) + (writes ? " is read-only" : " is not executable") + " inside " + quote(outer.path) +
                         (writes ? ", which is writable" : ", which is executable") +
                         ": Landlock cannot take that away, it needs a mount namespace (tier T2)",
                     ""});
      break;
    }
  return out;
}

bool applies(const SyscallSet& set, Network network, const std::set<Mechanism>& enforced) {
  return !set.needs || (enforced.contains(*set.needs) && (*set.needs != Mechanism::net_ns || network != Network::none));
}

}  // namespace caisson::policy
