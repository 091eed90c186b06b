// Narrows a policy as a request asks. The request comes from the agent, which is assumed hostile: everything is
// checked against the frozen policy, and the result can only be smaller.
#include "launcher/compiler/narrow.h"

#include <algorithm>

#include "launcher/common/policy/rows.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/secrets.h"
#include "launcher/compiler/text_formats.h"

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
    // The home covers the grant around it: a session of the whole policy sees nothing of that grant there.
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
  // A request names files of the container, and this is not one: without it the session could not use its secrets.
  const std::string trust = trust_of(policy);
  for (const Grant& grant : policy.grants) {
    const bool there = std::ranges::find(out, grant.path, &Grant::path) != out.end();
    if (!trust.empty() && grant.source == trust && !there) out.push_back(grant);
  }
  std::ranges::sort(out, {}, &Grant::path);
  return out;
}

std::unexpected<Error> wrong(const std::string& where, const std::string& what, const std::string& meant = {}) {
  return fail(Code::invalid_argument, where + ": " + what + (meant.empty() ? "" : "; meant " + quote(meant) + "?"));
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
  static constexpr std::string_view kTexts[] = {"path", "source", "description", "why"};
  if (!grant.is_object()) return wrong(where, "must be an object");
  if (!grant.contains("path")) return wrong(where, "field 'path' is missing");
  for (const auto& [key, value] : grant.items()) {
    const std::string at = where + "/" + json::pointer_token(key);
    const bool text = std::ranges::find(kTexts, key) != std::end(kTexts);
    const bool access = key == "access", flag = key == "execute" || key == "required";
    if (!text && !access && !flag) return wrong(at, "unknown field " + quote(key, 64));
    if (text) TRY(check_text(value, at, key == "why" ? kMaxWhy : key == "description" ? kMaxDescription : 0));
    if (access && value != "read" && value != "read-write") return wrong(at, "must be one of: read read-write");
    if (flag && !value.is_boolean()) return wrong(at, "must be true or false");
  }
  return {};
}

// One field of a request, by the type of the member that holds it.
Status parse(const Row& row, const Value& grants, std::optional<std::vector<Grant>>& out) {
  const std::string where(row.pointer);
  if (!grants.is_array()) return wrong(where, "must be a list");
  if (grants.size() > row.most)
    return wrong(where, "has " + std::to_string(grants.size()) + " elements, must have from 0 to " + std::to_string(row.most));
  for (out.emplace(); const Value& grant : grants) {
    TRY(check_grant(grant, where + "/" + std::to_string(out->size())));
    out->push_back(build_grant(grant));
    if (!grant.contains("source")) out->back().source.clear();
  }
  return {};
}
Status parse(const Row& row, const Value& limit, Limited& out) {
  const std::string where(row.pointer), range = "from " + std::to_string(row.least) + " to " + std::to_string(row.most);
  if (!limit.is_number_unsigned()) return wrong(where, "must be a whole number, " + range);
  const auto value = limit.get<std::uint64_t>();
  if (value < row.least || value > row.most) return wrong(where, std::to_string(value) + " is not " + range);
  out[std::string(row.name())] = value;
  return {};
}
Status parse(const Row& row, const Value& names, Words& out) {
  for (const Value& name : names) {
    const std::string& text = out.emplace_back(name.is_string() ? name.get<std::string>() : "");
    if (!names.is_array() || text.size() > kMaxName || path_fault("/" + text) || out.size() > row.most)
      return wrong(std::string(row.pointer), "must be a list of at most " + std::to_string(row.most) + " names or ends of paths");
  }
  return {};
}
// The only value of such a field that a request can ask for.
constexpr auto kMakeStrictest = [](const Row& row, auto& value) {
  using T = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::same_as<T, bool>) value = row.widens == Widens::smaller;
  else if constexpr (std::is_enum_v<T>) value = T{};
};
Status parse(const Row& row, const Value& value, bool& out) {
  Policy policy;
  each_row(policy, kMakeStrictest);
  const Value strictest = to_json(policy).at(Value::json_pointer(std::string(row.pointer)));
  if (value != strictest) return wrong(std::string(row.pointer), "a request can only ask for " + json::dump(strictest));
  out = true;
  return {};
}

// One member of a request, or of an object in it.
Status parse_member(const std::string& pointer, const Value& value, Narrowing& out) {
  std::string known;
  bool above = false;  // above a row that has its own pointer
  for (const Row& row : kRows) {
    const auto read = [&](auto asked) -> Status {
      if constexpr (requires { out.*asked; }) return parse(row, value, out.*asked);
      return {};
    };
    if (row.asked.index() == 0) continue;
    if (row.pointer == pointer) return std::visit(read, row.asked);
    above = above || row.pointer.starts_with(pointer + "/");
    known.append(" ").append(row.pointer.substr(1));
  }
  if (!above) return wrong(pointer, "a request cannot narrow this field, only these:" + known);
  if (!value.is_object()) return wrong(pointer, "must be an object");
  for (const auto& [key, member] : value.items()) TRY(parse_member(pointer + "/" + json::pointer_token(key), member, out));
  return {};
}

}  // namespace

std::vector<Grant> own_places(const Policy& policy) {
  std::vector<Grant> out;
  for (const auto& [path, whose] : {std::pair(policy.home_path, policy.home), std::pair(std::string("/tmp"), policy.tmp)})
    out.push_back({.path = path,
                   .source = path,
                   .access = whose == Scope::read ? Access::read : Access::read_write,
                   .execute = policy.exec_writable});
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

Result<std::shared_ptr<const Policy>> narrow(const std::shared_ptr<const Policy>& policy, const Narrowing& by) {
  auto out = std::make_shared<Policy>(*policy);
  each_row(*out, [&by](const Row& row, auto& value) {
    if (const auto* asked = std::get_if<bool Narrowing::*>(&row.asked); asked != nullptr && by.**asked)
      kMakeStrictest(row, value);
  });
  for (const auto& [pointer, whose, asked] :
       {std::tuple("/home", policy->home, by.home_private), std::tuple("/tmp", policy->tmp, by.tmp_private)})
    if (asked && whose == Scope::read)
      return refuse(*policy, pointer, "it is to be read, and one of the session's own is written to");
  if (!goes_out(out->network)) out->egress.clear();
  if (by.grants) {
    TRY_ASSIGN(out->grants, narrow_grants(*out, *by.grants));
    std::erase_if(out->hide, [&](const std::string& path) { return out_of_sight(*policy, out->grants, path); });
  }
  for (const auto& [name, value] : by.limits) {
    const auto row = std::ranges::find(kRows, "/limits/" + name, &Row::pointer);
    if (row == std::end(kRows)) return fail(Code::invalid_argument, "/limits: no such limit: " + quote(name, 64));
    std::uint64_t& limit = out->limits.*std::get<std::uint64_t Limits::*>(row->member);
    if (value < row->least || value > limit)
      return refuse(*policy, std::string(row->pointer),
                    std::to_string(value) + " is not from " + std::to_string(row->least) + " to " + std::to_string(limit));
    if (policy->system_packages && name == "packages_bytes" && value != limit)
      return refuse(*policy, "/limits/" + name, "it is the workspace's");
    limit = value;
  }
  out->protect.insert(out->protect.end(), by.protect.begin(), by.protect.end());
  if (out->protect.size() > kMaxProtect)
    return fail(Code::limit, "/protect: more than " + std::to_string(kMaxProtect) + " names, with those of the policy");
  // The copy holds what the policy grants, for all of its sessions: with other grants, a session has the container's own system.
  if (policy->system_packages && (by.system_none || by.grants)) {
    out->system_packages = false;
    std::erase(out->syscalls.allow, kPackagesSet);
    std::erase_if(out->sets, [](const SyscallSet& set) { return set.name == kPackagesSet; });
  }
  out->digest = digest_of(*out);
  return out;
}

Result<Narrowing> parse_narrowing(const Value& object) {
  Narrowing out;
  if (!object.is_object()) return fail(Code::invalid_argument, "narrow must be an object");
  TRY(parse_member("", object, out));
  return out;
}

}  // namespace caisson::policy
