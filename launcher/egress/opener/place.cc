#include "launcher/egress/opener/place.h"

#include <algorithm>

#include "launcher/egress/opener/visit.h"

namespace caisson::egress {

Place::Place(Poll& poll_, LauncherLine& launcher_, const Trust& trust_, std::optional<Authority>& authority_, std::uint64_t id_)
    : poll(poll_), launcher(launcher_), trust(trust_), authority(authority_), id(id_) {}

Place::~Place() = default;

void Place::set_lists(Lists lists, std::uint32_t generation_) {
  std::set<std::string> same;
  for (const auto& [domain, list] : lists.of)
    if (const auto before = list_of(domain); before && list_bytes(*before) == list_bytes(*list)) same.insert(domain);
  std::erase_if(visits_, [&same](const auto& visit) { return !same.contains(visit->domain()); });
  for (const auto& [domain, list] : lists.of)
    if (!same.contains(domain)) bytes_[domain] = std::make_shared<ByteBudget>(list->limits.bytes_per_second);
  std::erase_if(bytes_, [&lists](const auto& one) { return !lists.of.contains(one.first); });
  lists_ = std::move(lists);
  generation = generation_;
  for (const auto& [domain, list] : lists_.of) {
    const auto old = bindings_of(domain);
    change(domain, std::make_shared<const Bindings>(*list, old.get()));
  }
  std::erase_if(bindings_, [this](const auto& one) { return !lists_.of.contains(one.first); });
}

void Place::add_hosts(std::set<std::string>& opened) const {
  for (const auto& [domain, list] : lists_.of) opened.merge(opened_hosts(*list));
}

bool Place::set_secret(std::string_view domain, std::string_view name, std::string secret) {
  const auto old = bindings_of(domain);
  auto made = old && (secret.empty() || is_secret(secret)) ? old->with(name, std::move(secret)) : nullptr;
  if (!made) return false;
  change(std::string(domain), std::move(made));
  return true;
}

void Place::change(const std::string& domain, std::shared_ptr<const Bindings> to) {
  std::shared_ptr<const Bindings>& now = bindings_[domain];
  if (now && now->same(*to)) return;
  now = std::move(to);
  std::erase_if(visits_, [&domain](const auto& visit) { return visit->domain() == domain; });
}

std::shared_ptr<const Bindings> Place::bindings_of(std::string_view domain) const {
  const auto found = bindings_.find(domain);
  return found != bindings_.end() ? found->second : nullptr;
}

std::shared_ptr<const List> Place::list_of(std::string_view domain) const {
  const auto found = lists_.of.find(domain);
  return found != lists_.of.end() ? found->second : nullptr;
}

std::shared_ptr<ByteBudget> Place::bytes_of(std::string_view domain) const {
  const auto found = bytes_.find(domain);
  return found != bytes_.end() ? found->second : nullptr;
}

std::size_t Place::visits_of(std::string_view domain) const {
  return static_cast<std::size_t>(std::ranges::count(visits_, domain, [](const auto& visit) { return visit->domain(); }));
}

void Place::add(std::unique_ptr<Visit> visit) {
  const auto entry = visits_.insert(visits_.end(), std::move(visit));
  (*entry)->entry = entry;
  (*entry)->begin();
}

void Place::end(Visit& visit) { visits_.erase(visit.entry); }

}  // namespace caisson::egress
