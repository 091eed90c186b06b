// What a request may take away from a policy. The request comes from the agent, which is assumed hostile: everything is
// checked against the frozen policy, and the result can only be smaller.
#include <algorithm>

#include "launcher/base/hash.h"
#include "launcher/base/json.h"
#include "launcher/policy/in_force.h"
#include "launcher/policy/text_checks.h"

namespace caisson::policy {
namespace {

using json::Value;

std::unexpected<Error> refuse(const Policy& policy, const std::string& where, const std::string& what) {
  return fail(Code::permission_denied, where + ": " + what + " in policy " + quote(policy.domain));
}

// True for a hidden path that a session with these grants cannot reach: it lay in a grant that was narrowed away.
bool out_of_sight(const Policy& policy, const std::vector<Grant>& grants, const std::string& hidden) {
  const auto apart = [&hidden](std::string_view own) { return !inside(hidden, own) && !inside(own, hidden); };
  return ruling_grant(policy.grants, hidden) != nullptr && ruling_grant(grants, hidden) == nullptr && apart(policy.home_path) &&
         apart("/tmp");
}

Result<std::vector<Grant>> narrow_grants(const Policy& policy, const std::vector<Grant>& wanted) {
  std::vector<Grant> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Grant grant = wanted[i];
    const std::string where = "/grants/" + std::to_string(i);
    if (const auto fault = path_fault(grant.path)) return fail(Code::invalid_argument, where + "/path: " + fault->what);
    const Grant* outer = ruling_grant(policy.grants, grant.path);
    // The home lies over what is granted around it: from there the session of the whole policy has nothing.
    if (outer == nullptr || (inside(grant.path, policy.home_path) && !inside(outer->path, policy.home_path)))
      return refuse(policy, where + "/path", "no grant holds " + quote(grant.path));
    for (const std::string& hidden : policy.hide)
      if (grant.path != hidden && inside(grant.path, hidden))
        return refuse(policy, where + "/path", quote(grant.path) + " lies in " + quote(hidden) + ", which is hidden,");
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
  std::vector<Grant> own = own_places(policy);
  std::erase_if(own, [&](const Grant& g) { return (g.path == "/tmp" ? policy.tmp : policy.home) == Scope::private_; });
  for (const Grant& kept : policy.grants) {
    const Grant* outer = ruling_grant(out, kept.path);
    const Grant* place = ruling_grant(own, kept.path);  // the same in a home or /tmp that stay shared
    if (place != nullptr && (outer == nullptr || outer->path.size() < place->path.size())) outer = place;
    if (outer == nullptr || outer->path == kept.path) continue;
    Grant as_outer = *outer;
    as_outer.path = kept.path;
    as_outer.source += kept.path.substr(outer->path.size());
    // Names that are protected in a grant need not be in the home or /tmp around it.
    const bool bare = outer == place && !policy.protect.empty() && !(policy.protect_home && place->path == policy.home_path);
    if (bare || !no_more_than(as_outer, kept)) out.push_back(kept);
  }
  std::ranges::sort(out, {}, &Grant::path);
  return out;
}

std::unexpected<Error> wrong(const std::string& where, const std::string& what, const std::string& meant = {}) {
  return fail(Code::invalid_argument, where + ": " + what + (meant.empty() ? "" : "; meant " + quote(meant) + "?"));
}

// One of `known`, or an error that names them.
Status check_keys(const Value& object, const std::string& where, const std::vector<std::string>& known, const char* unknown) {
  if (!object.is_object()) return wrong(where, "must be an object");
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string names;
    for (const std::string& name : known) names += " " + name;
    return wrong(where + "/" + json::pointer_token(key), unknown + quote(key, 64) + "; there are:" + names);
  }
  return {};
}

// most: 0 for a path.
Status check_text(const Value& value, const std::string& where, std::size_t most) {
  if (!value.is_string()) return wrong(where, "must be a string");
  const auto& text = value.get_ref<const std::string&>();
  if (const auto fault = most == 0 ? path_fault(text) : std::nullopt) return wrong(where, fault->what, fault->meant);
  if (text.contains('\0')) return wrong(where, "text holds a NUL byte: " + quote(text));
  if (most != 0 && (text.empty() || text.size() > most))
    return wrong(where, "has " + std::to_string(text.size()) + " bytes, must have from 1 to " + std::to_string(most));
  return {};
}

Status check_grant(const Value& grant, const std::string& where) {
  TRY(check_keys(grant, where, {"path", "source", "access", "execute", "required", "description", "why"}, "unknown field "));
  if (!grant.contains("path")) return wrong(where, "field 'path' is missing");
  for (const auto& [key, value] : grant.items()) {
    const std::string at = where + "/" + key;
    if (key == "execute" || key == "required") {
      if (!value.is_boolean()) return wrong(at, "must be true or false");
    } else if (key == "access") {
      if (value != "read" && value != "read-write") return wrong(at, "must be one of: read read-write");
    } else {
      TRY(check_text(value, at, key == "why" ? kMaxWhy : key == "description" ? kMaxDescription : 0));
    }
  }
  return {};
}

Status parse_grants(const Value& grants, Narrowing& out) {
  if (!grants.is_array()) return wrong("/grants", "must be a list");
  if (grants.size() > kMaxGrants)
    return wrong("/grants",
                 "has " + std::to_string(grants.size()) + " elements, must have from 0 to " + std::to_string(kMaxGrants));
  for (const Value& grant : grants) {
    TRY(check_grant(grant, "/grants/" + std::to_string(out.grants.size())));
    out.grants.push_back(build_grant(grant));
    if (!grant.contains("source")) out.grants.back().source.clear();
  }
  out.grants_given = true;
  return {};
}

Status parse_limits(const Value& limits, Narrowing& out) {
  std::vector<std::string> known;
  for (const LimitRow& row : kLimits) known.emplace_back(row.name);
  TRY(check_keys(limits, "/limits", known, "unknown field "));
  for (const LimitRow& row : kLimits) {
    const auto limit = limits.find(row.name);
    if (limit == limits.end()) continue;
    const std::string at = std::string("/limits/") + row.name;
    const std::string range = "from " + std::to_string(row.least) + " to " + std::to_string(row.most);
    if (!limit->is_number_unsigned()) return wrong(at, "must be a whole number, " + range);
    const auto value = limit->get<std::uint64_t>();
    if (value < row.least || value > row.most) return wrong(at, std::to_string(value) + " is not " + range);
    out.limits[row.name] = value;
  }
  return {};
}

Status parse_protect(const Value& names, Narrowing& out) {
  for (const Value& name : names) {
    const std::string& text = out.protect.emplace_back(name.is_string() ? name.get<std::string>() : "");
    if (!names.is_array() || text.size() > kMaxName || path_fault("/" + text) || out.protect.size() > kMaxProtect)
      return wrong("/protect", "must be a list of at most " + std::to_string(kMaxProtect) + " names or ends of paths");
  }
  return {};
}

// A field of which a request can ask for one value only: whether it does.
Result<bool> asks_for(const Value& object, const char* key, const Value& least, const char* must) {
  const auto value = object.find(key);
  if (value == object.end()) return false;
  if (value->type() != least.type()) return wrong(std::string("/") + key, must);
  if (*value != least) return wrong(std::string("/") + key, "a request can only ask for " + json::dump(least));
  return true;
}

}  // namespace

Result<std::shared_ptr<const Policy>> narrow(const std::shared_ptr<const Policy>& policy, const Narrowing& by) {
  auto out = std::make_shared<Policy>(*policy);
  if (by.home_private) out->home = Scope::private_;
  if (by.tmp_private) out->tmp = Scope::private_;
  if (by.grants_given || !by.grants.empty()) {
    TRY_ASSIGN(out->grants, narrow_grants(*out, by.grants));
    std::erase_if(out->hide, [&](const std::string& path) { return out_of_sight(*policy, out->grants, path); });
  }
  for (const auto& [name, value] : by.limits) {
    const auto row = std::ranges::find_if(kLimits, [&](const LimitRow& r) { return name == r.name; });
    if (row == std::end(kLimits)) return fail(Code::invalid_argument, "/limits: no such limit: " + quote(name, 64));
    std::uint64_t& limit = out->limits.*row->member;
    if (value < row->least)
      return fail(Code::invalid_argument,
                  "/limits/" + name + ": " + std::to_string(value) + " is less than " + std::to_string(row->least));
    if (value > limit)
      return refuse(*policy, "/limits/" + name, std::to_string(value) + " is more than the limit of " + std::to_string(limit));
    if (policy->system_packages && name == "packages_bytes" && value != limit)
      return refuse(*policy, "/limits/" + name, "it is the workspace's");
    limit = value;
  }
  if (by.network_none) out->network = Network::none;
  out->protect_home = out->protect_home || by.protect_home;
  out->protect.insert(out->protect.end(), by.protect.begin(), by.protect.end());
  if (out->protect.size() > kMaxProtect)
    return fail(Code::limit, "/protect: more than " + std::to_string(kMaxProtect) + " names, with those of the policy");
  // The copy holds what the policy grants, for all of its sessions: who asks for other grants has the container's own system.
  if ((by.system_none || by.grants_given) && out->system_packages) {
    out->system_packages = false;
    std::erase(out->syscalls.allow, kPackagesSet);
    std::erase_if(out->sets, [](const SyscallSet& set) { return set.name == kPackagesSet; });
  }
  out->digest = sha256_hex(json::dump(to_json(*out)));
  return out;
}

Result<Narrowing> parse_narrowing(const Value& object) {
  if (!object.is_object()) return fail(Code::invalid_argument, "narrow must be an object");
  TRY(check_keys(object, "", {"grants", "limits", "home", "tmp", "network", "system_packages", "protect", "protect_home"},
                 "a request cannot narrow "));
  Narrowing out;
  if (const auto grants = object.find("grants"); grants != object.end()) {
    TRY(parse_grants(*grants, out));
  }
  if (const auto limits = object.find("limits"); limits != object.end()) {
    TRY(parse_limits(*limits, out));
  }
  TRY_ASSIGN(out.home_private, asks_for(object, "home", "private", "must be one of: private workspace"));
  TRY_ASSIGN(out.tmp_private, asks_for(object, "tmp", "private", "must be one of: private workspace"));
  if (const auto names = object.find("protect"); names != object.end()) {
    TRY(parse_protect(*names, out));
  }
  TRY_ASSIGN(out.protect_home, asks_for(object, "protect_home", true, "must be true or false"));
  TRY_ASSIGN(out.network_none, asks_for(object, "network", "none", "must be one of: none loopback"));
  TRY_ASSIGN(out.system_none, asks_for(object, "system_packages", false, "must be true or false"));
  return out;
}

}  // namespace caisson::policy
