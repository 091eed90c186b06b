#include "agent/auth/principal.h"

#include <algorithm>
#include <array>

#include "agent/http/target.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kAny = "*", kReadEnd = ":read";

}  // namespace

Scopes Scopes::everything() {
  Scopes scopes;
  scopes.areas_.emplace(kAny, Access::all);
  return scopes;
}

bool Scopes::add(std::string_view name, std::span<const std::string_view> areas) {
  Access access = Access::all;
  if (name.ends_with(kReadEnd)) {
    access = Access::read;
    name.remove_suffix(kReadEnd.size());
  }
  if (name != kAny && std::ranges::find(areas, name) == areas.end()) return false;
  const auto [at, added] = areas_.emplace(name, access);
  if (!added) at->second = std::max(at->second, access);
  return true;
}

Result<Scopes> Scopes::parse(std::span<const std::string> names, std::span<const std::string_view> areas) {
  if (names.size() > kMaxScopes) return fail(Code::invalid_argument, "more than " + std::to_string(kMaxScopes) + " scopes");
  Scopes scopes;
  for (const std::string& name : names)
    if (!scopes.add(name, areas)) return fail(Code::invalid_argument, "unknown scope " + quote(name));
  return scopes;
}

Scopes Scopes::of_claim(std::string_view claim, std::span<const std::string_view> areas) {
  Scopes scopes;
  while (!claim.empty()) {
    const std::size_t end = std::min(claim.find(' '), claim.size());
    (void)scopes.add(claim.substr(0, end), areas);  // false: of another system
    claim.remove_prefix(std::min(end + 1, claim.size()));
  }
  return scopes;
}

bool Scopes::permits(std::string_view area, Access access) const {
  return std::ranges::any_of(std::array{area, kAny}, [&](std::string_view name) {
    const auto at = areas_.find(name);
    return at != areas_.end() && at->second >= access;
  });
}

bool Scopes::within(const Scopes& other) const {
  return std::ranges::all_of(areas_, [&](const auto& item) { return other.permits(item.first, item.second); });
}

std::vector<std::string> Scopes::names() const {
  std::vector<std::string> out;
  for (const auto& [area, access] : areas_) out.push_back(area + std::string(access == Access::read ? kReadEnd : ""));
  return out;
}

Result<PathPrefix> PathPrefix::parse(std::string_view text) {
  if (!text.starts_with('/') || text.contains('?') || text.contains('#') || text.size() > 1024)
    return fail(Code::invalid_argument, "not an absolute path: " + quote(text));
  TRY_ASSIGN(http::Target target, http::decode_target(text));
  // It becomes the Path of a cookie (RFC 6265, 4.1.1).
  if (text.contains(';')) return fail(Code::invalid_argument, "a path may have no semicolon");
  PathPrefix prefix;
  prefix.text_ = text;
  prefix.segments_ = std::move(target.segments);
  if (!prefix.segments_.empty() && prefix.segments_.back().empty()) prefix.segments_.pop_back();
  return prefix;
}

// Programs behind the proxy get the bytes as they were sent, and many decode once more: "..%2f", "..;" and "%5c" leave a folder
// there.
bool PathPrefix::holds(const std::vector<std::string>& segments) const {
  static constexpr std::string_view kSeparators("/\\\0", 3);
  const auto leaves = [](std::string_view one) { return one.starts_with("..") || one.find_first_of(kSeparators) != one.npos; };
  if (!segments_.empty() && std::ranges::any_of(segments, leaves)) return false;
  return segments.size() >= segments_.size() && std::equal(segments_.begin(), segments_.end(), segments.begin());
}

bool Bounds::within(const Bounds& other) const {
  if (!scopes.within(other.scopes)) return false;
  if (other.workspace && workspace != other.workspace) return false;
  if (other.port && port != other.port) return false;
  if (other.terminal && terminal != other.terminal) return false;
  if (other.session && session != other.session) return false;
  return !other.path || (path && path->within(*other.path));
}

std::string_view kind_name(Kind kind) {
  constexpr std::array<std::string_view, 9> kNames{"key",  "jwt",       "minted",  "ticket", "page",
                                                   "peer", "published", "session", "open"};
  static_assert(kNames.size() == static_cast<std::size_t>(Kind::open) + 1, "one for each kind");
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace caisson::auth
