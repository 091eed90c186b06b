// A policy as canonical JSON: what its digest is made of.

#include "launcher/policy/stages.h"

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

}  // namespace caisson::policy
