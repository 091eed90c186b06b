#include "agent/auth/life.h"

#include <algorithm>

namespace caisson::auth {

bool Life::over() const {
  for (const Life* one = this; one != nullptr; one = one->parent_.get())
    if (one->over_) return true;
  return false;
}

LifePtr WorkspaceLives::of(const std::string& name) {
  if (lives_.size() >= sweep_at_) {
    std::erase_if(lives_, [](const auto& item) { return item.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * lives_.size());
  }
  std::weak_ptr<Life>& kept = lives_[name];
  LifePtr life = kept.lock();
  if (!life) kept = life = std::make_shared<Life>();
  return life;
}

void WorkspaceLives::end(std::string_view name) {
  const auto at = lives_.find(name);
  if (at == lives_.end()) return;
  if (const LifePtr life = at->second.lock()) life->end();
  lives_.erase(at);
}

}  // namespace caisson::auth
