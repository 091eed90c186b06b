#include "launcher/pid1/execute/subset.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "launcher/common/confine/frozen_plan.h"
#include "launcher/common/policy/rows.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::confine {
namespace {

using policy::inside;
using policy::Member;
using policy::Policy;
using policy::Row;
using policy::Widens;

template <class T>
bool same(const T& a, const T& b) {
  policy::Writer one, other;
  one(a), other(b);
  return one.bytes == other.bytes;
}

// Whether a grant allows no more than the domain's grant that governs its path.
bool granted(const policy::Grant& grant, const std::vector<policy::Grant>& by) {
  const policy::Grant* outer = policy::ruling_grant(by, grant.path);
  return outer != nullptr && policy::no_more_than(grant, *outer) && grant.mounted <= outer->mounted;
}

// A field that requests narrow has less, or the strictest value; any other has the domain's. What is hidden in a grant that is
// gone need not be, which the plan shows; and the digest is made of all the others.
template <class T>
bool no_wider(const Row& row, const T& narrowed, const T& domain) {
  if (row.member == Member(&Policy::digest)) return true;
  // A request takes the way out away with the network, or leaves it as it is: what the bytes permit is not for the launcher to
  // read.
  if constexpr (std::same_as<T, std::string>)
    if (row.member == Member(&Policy::egress)) return narrowed.empty() || narrowed == domain;
  if constexpr (std::same_as<T, policy::Words>)
    if (row.member == Member(&Policy::hide))
      return std::ranges::all_of(narrowed, [&](const auto& path) { return std::ranges::find(domain, path) != domain.end(); });
  if (std::holds_alternative<std::monostate>(row.asked)) return same(narrowed, domain);
  if constexpr (std::same_as<T, std::vector<policy::Grant>>)
    return std::ranges::all_of(narrowed, [&domain](const policy::Grant& g) { return granted(g, domain); });
  else if constexpr (std::same_as<T, policy::Words>)  // more names are protected
    return std::ranges::all_of(domain, [&](const auto& name) { return std::ranges::find(narrowed, name) != narrowed.end(); });
  else if constexpr (std::same_as<T, bool>) return row.widens == Widens::smaller ? narrowed >= domain : narrowed <= domain;
  else if constexpr (std::is_enum_v<T> || std::integral<T>) return narrowed <= domain;
  else return false;
}

// What a session without the workspace's copy of the system goes without.
Policy without_packages(const Policy& domain) {
  Policy out = domain;
  out.system_packages = false;
  std::erase(out.syscalls.allow, policy::kPackagesSet);
  std::erase_if(out.sets, [](const policy::SyscallSet& set) { return set.name == policy::kPackagesSet; });
  return out;
}

// The domain's plan, as it was before its copy of the system took the place of what is granted of it.
Plan without_copy(Plan plan) {
  const Policy& policy = *plan.policy;
  const auto copied = [tops = plan.system.tops](std::string_view path) {
    return std::ranges::any_of(tops, [path](const std::string& top) { return inside(path, top); });
  };
  std::erase_if(plan.binds, [&](const Bind& b) { return b.staged && copied(b.target); });
  for (const policy::Grant& g : policy.grants)
    if (copied(g.path) && std::ranges::find(plan.absent, g.path) == plan.absent.end())
      plan.binds.push_back(
          {.target = g.path, .source = g.source, .read_only = g.access == policy::Access::read, .execute = g.execute});
  for (const auto& [path, content] : policy.files)
    if (copied(path)) plan.files.emplace_back(path, content);
  for (const auto& [path, target] : policy.links)
    if (copied(path)) plan.links.emplace_back(path, target);
  for (const std::string& path : policy.hide)
    if (copied(path)) plan.hide.push_back(path);
  plan.system = {};
  plan.policy = std::make_shared<const Policy>(without_packages(policy));
  return plan;
}

// Both plans, for rules that need more than their member. The member comes as the narrowed plan has it and as the domain's has
// it.
struct Plans {
  const Plan& narrowed;
  const Plan& domain;
};

constexpr auto kSame = [](const auto& n, const auto& d, const Plans&) { return same(n, d); };
constexpr auto kNoLess = [](const auto& n, const auto& d, const Plans&) { return n >= d; };
// Put there by the launcher itself, or only told.
constexpr auto kOurs = [](const auto&, const auto&, const Plans&) { return true; };
constexpr auto kSameSet = [](const auto& n, const auto& d, const Plans&) {
  return std::set(n.begin(), n.end()) == std::set(d.begin(), d.end());
};

constexpr auto kInet = [](bool n, bool d, const Plans& p) {
  return n <= d && (!n || p.narrowed.policy->network != policy::Network::none);
};

// Where the domain has no limits of disks, a request's need the controller.
constexpr auto kIo = [](bool n, bool d, const Plans& p) {
  return n == d || (n && p.narrowed.cgroup && p.narrowed.policy->limits.io());
};

bool protects(const Plan& plan, const Bind& bind) {
  if (bind.read_only || bind.device) return true;
  return bind.target == plan.policy->home_path ? plan.policy->protect_home : !bind.staged;
}

// Whether `inner`, at or below `outer`, shows no more of it than that allows.
bool within(const Bind& inner, const Bind& outer) {
  const bool here = inner.target == outer.target;
  return inner.read_only >= outer.read_only && inner.execute <= outer.execute && inner.device == outer.device &&
         (here || !inner.device) && (inner.held || !inner.staged || (here && outer.staged)) &&
         inner.source == outer.source + inner.target.substr(outer.target.size());
}

bool covered(const Plan& plan, const std::string& path) {
  return std::ranges::any_of(plan.hide, [&path](const std::string& cover) { return inside(path, cover); });
}

// The mount that governs a path. A held mount shows what is around it.
const Bind* shown_by(const Plan& plan, std::string_view path) {
  const Bind* found = governing(plan, path);
  while (found != nullptr && found->held)
    found = governing(plan, std::string_view(found->target).substr(0, found->target.rfind('/')));
  return found;
}

// Whether a mount of the domain is gone from what is around it, and that shows more than it. A session's own home and /tmp count
// as what the policy names there.
bool lost(const Bind& carved, const Plans& p) {
  const Bind* now = shown_by(p.narrowed, carved.target);
  if (now == nullptr || now->target == carved.target || carved.held || covered(p.narrowed, carved.target)) return false;
  Bind shown = *now;
  shown.target = carved.target;
  const bool own = now->staged || now->target == p.narrowed.policy->home_path;
  shown.source = own ? carved.target : now->source + carved.target.substr(now->target.size());
  shown.staged = false;
  const bool names = !p.domain.policy->protect.empty() && protects(p.domain, carved) && !protects(p.narrowed, *now);
  return names || !within(shown, carved);
}

// Each mount lies in one of the domain's, and none that is missing was narrower than what is around it.
constexpr auto kBinds = [](const std::vector<Bind>& n, const std::vector<Bind>& d, const Plans& p) {
  for (const Bind& bind : n)
    if (const Bind* outer = shown_by(bind.held ? p.narrowed : p.domain, bind.target); outer == nullptr || !within(bind, *outer))
      if (std::ranges::none_of(d, [&bind](const Bind& same_place) { return bind.held && same(bind, same_place); })) return false;
  return std::ranges::none_of(d, [&p](const Bind& carved) { return lost(carved, p); });
};

// A cover may go with all that it covered.
constexpr auto kHide = [](const auto&, const std::vector<std::string>& d, const Plans& p) {
  return std::ranges::all_of(d, [&p](const std::string& path) {
    const bool shown = governing(p.narrowed, path) != nullptr ||
                       std::ranges::any_of(p.narrowed.binds, [&path](const Bind& b) { return inside(b.target, path); });
    return !shown || covered(p.narrowed, path);
  });
};
constexpr auto kMakeable = [](const std::vector<std::string>& n, const std::vector<std::string>&, const Plans& p) {
  const auto& hide = p.narrowed.hide;
  return std::ranges::all_of(n, [&](const std::string& path) { return std::ranges::find(hide, path) != hide.end(); });
};
// Its own empty home and /tmp, in place of the workspace's.
constexpr auto kDirectories = [](const std::vector<std::string>& n, const std::vector<std::string>& d, const Plans& p) {
  return std::ranges::all_of(n, [&](const std::string& path) {
    return path == "/tmp" || path == p.narrowed.policy->home_path || std::ranges::find(d, path) != d.end();
  });
};
constexpr auto kTmpOptions = [](const std::string& n, const std::string& d, const Plans& p) {
  return n == (d.empty() ? d : tmp_options(p.narrowed.policy->limits));
};

constexpr auto kLandlock = [](const std::vector<LandlockRule>& n, const std::vector<LandlockRule>& d, const Plans&) {
  return std::ranges::all_of(n, [&d](const LandlockRule& rule) {
    std::uint64_t allowed = 0;
    for (const LandlockRule& outer : d)
      if (outer.path == "/" || inside(rule.path, outer.path)) allowed |= outer.access;
    return (rule.access & ~allowed) == 0;
  });
};
constexpr auto kLimits = [](const auto& n, const auto& d, const Plans&) {
  return std::ranges::equal(n, d, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.rlim_cur <= b.second.rlim_cur && a.second.rlim_max <= b.second.rlim_max;
  });
};
constexpr auto kMechanisms = [](const auto& n, const auto& d, const Plans& p) {
  for (int m = 0; m < kMechanismCount; ++m) {
    const bool may = static_cast<Mechanism>(m) == Mechanism::io && d[m].state == MechanismState::disabled_by_policy &&
                     (n[m].state == MechanismState::enforced) == p.narrowed.io;
    if (!may && !same(n[m], d[m])) return false;
  }
  return true;
};
// A request that takes something away may also remove these risks.
constexpr auto kResidual = [](const std::vector<Residual>& n, const std::vector<Residual>& d, const Plans&) {
  static constexpr std::string_view kMayGo[] = {"home-quota", "hidden-readable", "loopback-shared", "system-shared",
                                                "ways-alike", "tcp-only",        "named-ports"};
  return std::ranges::all_of(d, [&n](const Residual& one) {
    return std::ranges::find(kMayGo, one.id) != std::end(kMayGo) ||
           std::ranges::any_of(n, [&one](const Residual& r) { return r.id == one.id && r.what == one.what; });
  });
};

template <class Holds>
struct Rule {
  const char* name;
  Holds holds;
};
#define CAISSON_RULE(member, holds) \
  Rule { #member, holds }
// In the order of members() (frozen_plan.h).
// clang-format off: one a line
constexpr std::tuple kRules{
    CAISSON_RULE(policy, kOurs),  // wider() of policies
    CAISSON_RULE(tier, kSame),
    CAISSON_RULE(user_ns, kSame),
    CAISSON_RULE(mount_ns, kSame),
    CAISSON_RULE(pid_ns, kSame),
    CAISSON_RULE(ipc_ns, kSame),
    CAISSON_RULE(uts_ns, kSame),
    CAISSON_RULE(net_ns, kSame),
    CAISSON_RULE(cgroup_ns, kSame),
    CAISSON_RULE(cgroup, kSame),
    CAISSON_RULE(io, kIo),
    CAISSON_RULE(connected, kInet),
    CAISSON_RULE(nested, kSame),
    CAISSON_RULE(disks, kOurs),
    CAISSON_RULE(single_use, kNoLess),
    CAISSON_RULE(inet, kInet),
    CAISSON_RULE(change_uid, kSame),
    CAISSON_RULE(observe, kSame),
    CAISSON_RULE(ungoverned, kSame),
    CAISSON_RULE(proc, kSame),
    CAISSON_RULE(binds, kBinds),
    CAISSON_RULE(directories, kDirectories),
    CAISSON_RULE(files, kSameSet),
    CAISSON_RULE(links, kSameSet),
    CAISSON_RULE(hide, kHide),
    CAISSON_RULE(makeable, kMakeable),
    CAISSON_RULE(tools, kSame),
    CAISSON_RULE(private_tmp_options, kTmpOptions),
    CAISSON_RULE(protect, kOurs),
    CAISSON_RULE(system, kSame),
    CAISSON_RULE(home_options, kSame),
    CAISSON_RULE(landlock, kLandlock),
    CAISSON_RULE(landlock_fs, kSame),
    CAISSON_RULE(landlock_scoped, kSame),
    CAISSON_RULE(limits, kLimits),
    CAISSON_RULE(mechanisms, kMechanisms),
    CAISSON_RULE(absent, kOurs),
    CAISSON_RULE(closed, kOurs),
    CAISSON_RULE(residual, kResidual),
    CAISSON_RULE(claims, kOurs),
    CAISSON_RULE(view, kOurs),
    CAISSON_RULE(canonical, kOurs),
};
// clang-format on

constexpr auto kTie = [](auto&... all) { return std::tie(all...); };
auto tied(const Plan& plan) { return members(kTie, const_cast<Plan&>(plan)); }
static_assert(std::tuple_size_v<decltype(kRules)> == std::tuple_size_v<decltype(tied(std::declval<Plan>()))>);

std::optional<std::string> first_wider(const Plans& plans) {
  std::optional<std::string> out;
  const auto narrowed = tied(plans.narrowed), domain = tied(plans.domain);
  const auto check = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    const auto& rule = std::get<I>(kRules);
    if (!out && !rule.holds(std::get<I>(narrowed), std::get<I>(domain), plans)) out = rule.name;
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check(std::integral_constant<std::size_t, I>()), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(kRules)>>());
  return out;
}

}  // namespace

std::vector<std::string> plan_rules() {
  return std::apply([](const auto&... rule) { return std::vector<std::string>{rule.name...}; }, kRules);
}

std::optional<std::string> wider(const Policy& narrowed, const Policy& domain) {
  if (domain.system_packages && !narrowed.system_packages) return wider(narrowed, without_packages(domain));
  for (const Row& row : policy::kRows) {
    const auto less = [&](auto member) { return no_wider(row, value_of(narrowed, member), value_of(domain, member)); };
    if (!std::visit(less, row.member)) return row.pointer.empty() ? "/layers" : std::string(row.pointer);
  }
  return std::nullopt;
}

std::optional<std::string> wider(const Plan& narrowed, const Plan& domain) {
  if (!domain.system.empty() && narrowed.system.empty()) return wider(narrowed, without_copy(domain));
  if (auto field = wider(*narrowed.policy, *domain.policy)) return "policy" + *field;
  return first_wider({narrowed, domain});
}

}  // namespace caisson::confine
