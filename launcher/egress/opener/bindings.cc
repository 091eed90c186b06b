#include "launcher/egress/opener/bindings.h"

#include <algorithm>
#include <utility>

namespace caisson::egress {

Bindings::Bindings(const List& list, const Bindings* before) {
  for (const Binding& binding : list.bindings) {
    all_.push_back({.binding = binding, .secret = {}});
    if (before == nullptr) continue;
    const auto old = std::ranges::find(before->all_, binding, &Bound::binding);
    if (old != before->all_.end()) all_.back().secret = old->secret;
  }
}

std::shared_ptr<const Bindings> Bindings::with(std::string_view name, std::string secret) const {
  const auto made = std::make_shared<Bindings>(*this);
  const auto bound = std::ranges::find(made->all_, name, [](const Bound& one) { return std::string_view(one.binding.name); });
  if (bound == made->all_.end()) return nullptr;
  bound->secret = std::move(secret);
  made->forms_.clear();
  return made;
}

bool Bindings::same(const Bindings& other) const {
  return std::ranges::equal(all_, other.all_, [](const Bound& one, const Bound& two) {
    return one.binding == two.binding && one.secret == two.secret;
  });
}

const Forms& Bindings::forms_of(const std::string& host) const {
  if (const auto made = forms_.find(host); made != forms_.end()) return made->second;
  std::vector<std::string> secrets;
  for (const Bound& one : all_)
    if (one.binding.host == host && !one.secret.empty()) secrets.push_back(one.secret);
  return forms_.emplace(host, Forms(secrets)).first->second;
}

}  // namespace caisson::egress
