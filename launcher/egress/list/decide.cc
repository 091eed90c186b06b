#include <algorithm>

#include "launcher/egress/list/list.h"
#include "launcher/egress/list/prefix.h"

namespace caisson::egress {
namespace {

bool has_port(const std::vector<Ports>& ports, std::uint16_t port) {
  return std::ranges::any_of(ports, [port](const Ports& range) { return range.first <= port && port <= range.last; });
}

bool permits_port(const Rule& rule, std::uint16_t port) {
  if (!rule.ports.empty()) return has_port(rule.ports, port);
  return rule.deny || (!rule.address && (port == 443 || port == 80));
}

bool is_below(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() + 1 && name.ends_with(suffix) && name[name.size() - suffix.size() - 1] == '.';
}

bool names_address(const Rule& rule, const Address& address) {
  return rule.address && contains({*rule.address, rule.prefix}, address);
}

// How exactly the rule names the host; 0: not at all. Of several rules that permit, the most exact one says how.
std::size_t matches(const Rule& rule, const Host& host) {
  if (const auto* address = std::get_if<Address>(&host)) return names_address(rule, *address) ? rule.prefix + 1 : 0;
  const std::string& name = std::get<Name>(host).text;
  if (!rule.name.empty()) return rule.name == name ? name.size() + 1 : 0;
  return !rule.suffix.empty() && is_below(name, rule.suffix) ? rule.suffix.size() : 0;
}

// A denied address is denied in the forms that carry it, too.
bool denies_address(const Rule& rule, const Address& address) {
  return names_address(rule, address) ||
         std::ranges::any_of(carried(address), [&](const Address& inner) { return names_address(rule, inner); });
}

bool denies(const Rule& rule, const Host& host) {
  const auto* address = std::get_if<Address>(&host);
  return rule.deny && (address != nullptr ? denies_address(rule, *address) : matches(rule, host) > 0);
}

template <class Counts>
Verdict judge(const List& list, const Host& host, const Counts& counts) {
  using Kind = Verdict::Kind;
  Verdict verdict{list.mode == Mode::allowlist ? Kind::none : Kind::allow};
  std::size_t best = 0;
  for (std::size_t i = 0; i < list.rules.size(); ++i) {
    const Rule& rule = list.rules[i];
    if (!counts(rule)) continue;
    if (denies(rule, host)) {
      if (rule.alarm || verdict.kind != Kind::deny)
        verdict = {.kind = Kind::deny, .rule = static_cast<int>(i), .alarm = rule.alarm};
      if (rule.alarm) break;
    }
    if (verdict.kind == Kind::deny) continue;
    const std::size_t exact = rule.deny ? 0 : matches(rule, host);
    if (exact <= best) continue;
    best = exact;
    verdict = {Kind::allow, static_cast<int>(i), rule.private_, rule.read_only, rule.sni, rule.inspect};
  }
  return verdict;
}

}  // namespace

Verdict decide(const List& list, const Host& host, std::uint16_t port) {
  return judge(list, host, [port](const Rule& rule) { return permits_port(rule, port); });
}

Verdict decide_name(const List& list, const Name& name) {
  return judge(list, name, [](const Rule& rule) { return !rule.deny || rule.ports.empty(); });
}

bool address_permitted(const List& list, const Verdict& verdict, const Host& asked, const Address& to, std::uint16_t port) {
  const Address address = canonical(to);
  if (verdict.kind != Verdict::Kind::allow || verdict.rule >= static_cast<int>(list.rules.size())) return false;
  for (const Rule& rule : list.rules)
    if (rule.deny && permits_port(rule, port) && denies_address(rule, address)) return false;
  const Rule* rule = verdict.rule >= 0 ? &list.rules[static_cast<std::size_t>(verdict.rule)] : nullptr;
  if (const auto* literal = std::get_if<Address>(&asked); literal != nullptr && canonical(*literal) != address) return false;
  const bool named = rule != nullptr && names_address(*rule, address);
  switch (class_of(address)) {
    case AddressClass::global:
      return true;
    case AddressClass::private_:
    case AddressClass::shared:
      return named || verdict.private_;
    case AddressClass::metadata:
      return named && rule->prefix == family_bits(address);
    case AddressClass::loopback:
    case AddressClass::link_local:
    case AddressClass::multicast:
    case AddressClass::reserved:
    case AddressClass::translated:
      return false;
  }
  return false;
}

}  // namespace caisson::egress
