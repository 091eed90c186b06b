#include "launcher/egress/opener/bindings.h"

#include <algorithm>
#include <utility>

namespace caisson::egress {
namespace {

constexpr std::size_t kMostBefore = 3;

}  // namespace

Bindings::Bindings(const List& list, const Bindings* before) {
  for (const Binding& binding : list.bindings) {
    all_.push_back({.binding = binding, .secret = {}});
    if (before == nullptr) continue;
    const auto old = std::ranges::find(before->all_, binding, &Bound::binding);
    if (old != before->all_.end()) all_.back().secret = old->secret, all_.back().before = old->before;
  }
}

std::shared_ptr<const Bindings> Bindings::with(std::string_view name, std::string secret) const {
  const auto made = std::make_shared<Bindings>(*this);
  const auto bound = std::ranges::find(made->all_, name, [](const Bound& one) { return std::string_view(one.binding.name); });
  if (bound == made->all_.end()) return nullptr;
  if (!bound->secret.empty() && bound->secret != secret) bound->before.insert(bound->before.begin(), bound->secret);
  if (bound->before.size() > kMostBefore) bound->before.pop_back();
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
  // Not one of each name below a suffix that a session asks for: they are as many as bindings.
  if (std::ranges::find(all_, host, [](const Bound& one) { return one.binding.host; }) == all_.end()) return no_forms_;
  if (const auto made = forms_.find(host); made != forms_.end()) return made->second;
  std::vector<std::string> secrets;
  for (const Bound& one : all_)
    if (one.binding.host == host) {
      if (!one.secret.empty()) secrets.push_back(one.secret);
      secrets.insert(secrets.end(), one.before.begin(), one.before.end());
    }
  return forms_.emplace(host, Forms(secrets)).first->second;
}

}  // namespace caisson::egress
