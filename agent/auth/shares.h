// Shares of a table that everybody can fill: whatever one credential puts into it, the entries of others stay. Who came with a
// credential may do little; without shares, it would still end the logins and tickets of all others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "agent/auth/principal.h"

namespace caisson::auth {

// The key of the largest group among the entries for which `counts` holds.
template <class Table, class Group, class Counts>
[[nodiscard]] std::pair<std::string_view, std::size_t> largest_group(const Table& table, Group group, Counts counts) {
  std::map<std::string_view, std::size_t> sizes;
  for (const auto& item : table)
    if (counts(item)) ++sizes[group(item)];
  const auto at = std::ranges::max_element(sizes, {}, [](const auto& size) { return size.second; });
  return at == sizes.end() ? std::pair<std::string_view, std::size_t>() : std::pair<std::string_view, std::size_t>(*at);
}

// Makes room for one entry of `owner`: a root at its share loses its own oldest entry. In a full table the largest root of the
// largest holder loses its oldest one. owner_of, age_of: of an item of the table; the smallest age is the oldest.
template <class Table, class OwnerOf, class AgeOf>
void make_room(Table& table, const Principal& owner, std::size_t share, std::size_t most, OwnerOf owner_of, AgeOf age_of) {
  const auto root_of = [&](const auto& item) -> std::string_view { return owner_of(item).root; };
  const auto end_oldest = [&](const auto& meant) {
    auto oldest = table.end();
    for (auto at = table.begin(); at != table.end(); ++at)
      if (meant(*at) && (oldest == table.end() || age_of(*at) < age_of(*oldest))) oldest = at;
    if (oldest != table.end()) table.erase(oldest);
  };
  const auto same_root = [&](const auto& item) {
    return owner_of(item).root == owner.root && owner_of(item).holder() == owner.holder();
  };
  if (static_cast<std::size_t>(std::ranges::count_if(table, same_root)) >= share) return end_oldest(same_root);
  if (table.size() < most) return;
  const auto holder_of = [&](const auto& item) -> std::string_view { return owner_of(item).holder(); };
  const std::string holder(largest_group(table, holder_of, [](const auto&) { return true; }).first);
  const auto of_holder = [&](const auto& item) { return holder_of(item) == holder; };
  const std::string root(largest_group(table, root_of, of_holder).first);
  end_oldest([&](const auto& item) { return of_holder(item) && root_of(item) == root; });
}

}  // namespace caisson::auth
