// What a request may take away from a policy. The request comes from the agent, which is assumed hostile: everything is
// checked against the frozen policy, and the result can only be smaller.
#include <algorithm>

#include "launcher/base/hash.h"
#include "launcher/policy/stages.h"

namespace caisson::policy {
namespace {

std::unexpected<Error> refuse(const Policy& policy, const std::string& where, const std::string& what) {
  return fail(Code::permission_denied, where + ": " + what + " in policy " + quote(policy.domain));
}

Result<std::vector<Grant>> narrow_grants(const Policy& policy, const std::vector<Grant>& wanted) {
  std::vector<Grant> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Grant grant = wanted[i];
    const std::string where = "/grants/" + std::to_string(i);
    if (const auto fault = form_fault(Form::path, grant.path))
      return fail(Code::invalid_argument, where + "/path: " + fault->what);
    const Grant* outer = ruling_grant(policy.grants, grant.path);
    if (outer == nullptr) return refuse(policy, where + "/path", "no grant holds " + quote(grant.path));
    // A request says only where; from where, the policy knows.
    const std::string source = outer->source + grant.path.substr(outer->path.size());
    if (!grant.source.empty() && grant.source != grant.path && grant.source != source)
      return refuse(policy, where + "/source", quote(grant.path) + " has another source");
    grant.source = source;
    if (grant.access == Access::read_write && outer->access == Access::read)
      return refuse(policy, where + "/access", quote(grant.path) + " is read-only");
    if (grant.execute && !outer->execute) return refuse(policy, where + "/execute", quote(grant.path) + " is not executable");
    if (std::ranges::find(out, grant.path, &Grant::path) != out.end())
      return fail(Code::invalid_argument, where + "/path: is granted twice: " + quote(grant.path));
    out.push_back(std::move(grant));
  }
  // A grant of the policy inside a wanted one may be a carve-out (read-only in read-write, or another source): dropping it
  // would widen, so it stays as it is.
  for (const Grant& kept : policy.grants) {
    const Grant* outer = ruling_grant(out, kept.path);
    if (outer == nullptr || outer->path == kept.path) continue;
    Grant as_outer = *outer;
    as_outer.path = kept.path;
    as_outer.source += kept.path.substr(outer->path.size());
    if (!no_more_than(as_outer, kept)) out.push_back(kept);
  }
  std::ranges::sort(out, {}, &Grant::path);
  return out;
}

const Field& limit_field(const std::string& name) { return *find_field(policy_fields(), "/limits/" + name); }

}  // namespace

Result<std::shared_ptr<const Policy>> narrow(const std::shared_ptr<const Policy>& policy, const Narrowing& by) {
  auto out = std::make_shared<Policy>(*policy);
  if (by.grants_given || !by.grants.empty()) {
    TRY_ASSIGN(out->grants, narrow_grants(*policy, by.grants));
    std::erase_if(out->hide, [&](const std::string& path) { return ruling_grant(out->grants, path) == nullptr; });
  }
  for (const auto& [name, value] : by.limits) {
    const auto row = std::ranges::find_if(kLimits, [&](const LimitRow& r) { return name == r.name; });
    if (row == std::end(kLimits)) return fail(Code::invalid_argument, "/limits: no such limit: " + quote(name, 64));
    std::uint64_t& limit = out->limits.*row->member;
    if (value < limit_field(name).min)
      return fail(Code::invalid_argument,
                  "/limits/" + name + ": " + std::to_string(value) + " is less than " + std::to_string(limit_field(name).min));
    if (value > limit)
      return refuse(*policy, "/limits/" + name, std::to_string(value) + " is more than the limit of " + std::to_string(limit));
    if (policy->system_packages && name == "packages_bytes" && value != limit)
      return refuse(*policy, "/limits/" + name, "it is the workspace's");
    limit = value;
  }
  if (by.home_private) out->home = Scope::private_;
  if (by.tmp_private) out->tmp = Scope::private_;
  if (by.network_none) out->network = Network::none;
  // The copy holds what the policy grants, for all of its sessions: who asks for other grants has the container's own system.
  if ((by.system_none || by.grants_given) && out->system_packages) {
    out->system_packages = false;
    std::erase(out->syscalls.allow, kPackagesSet);
    std::erase_if(out->sets, [](const SyscallSet& set) { return set.name == kPackagesSet; });
  }
  out->digest = sha256_hex(json::dump(to_json(*out)));
  return out;
}

Result<Narrowing> parse_narrowing(const json::Value& object) {
  Source source{.file = "", .doc = object, .lines = {}};
  if (!object.is_object()) return fail(Code::invalid_argument, "narrow must be an object");
  Problems problems;
  const std::vector<std::string> known{"grants", "limits", "home", "tmp", "network", "system_packages"};
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      problems.add(source, "/" + json::pointer_token(key), "a request cannot narrow " + quote(key, 64), nearest(key, known));
  if (problems.count() == 0) validate(source, policy_fields(), problems);
  const auto only = [&](const char* key, const json::Value& value) {
    if (problems.count() == 0 && object.contains(key) && object[key] != value)
      problems.add(source, std::string("/") + key, "a request can only ask for " + json::dump(value));
  };
  only("home", "private");
  only("tmp", "private");
  only("network", "none");
  only("system_packages", false);
  if (problems.count() > 0) return fail(Code::invalid_argument, problems.take().front().text());

  Narrowing out;
  out.grants_given = object.contains("grants");
  for (const json::Value& grant : object.value("grants", json::Value::array())) {
    out.grants.push_back(build_grant(grant));
    if (!grant.contains("source")) out.grants.back().source.clear();
  }
  const json::Value limits = object.value("limits", json::Value::object());  // outlives the loop
  for (const auto& [name, value] : limits.items()) out.limits[name] = value.get<std::uint64_t>();
  out.home_private = object.contains("home");
  out.tmp_private = object.contains("tmp");
  out.network_none = object.contains("network");
  out.system_none = object.contains("system_packages");
  return out;
}

}  // namespace caisson::policy
