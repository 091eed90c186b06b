// Life: a credential that the server handed out ends with the workspace that it is bound to, and with the page login from which
// it came. Each copy of the credential, in a table or with an open socket, shares these two lives. Their end therefore reaches
// every copy at once, and a later workspace of the same name has a life of its own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace caisson::auth {

class Life;
using LifePtr = std::shared_ptr<Life>;

class Life {
 public:
  explicit Life(LifePtr parent = nullptr) : parent_(std::move(parent)), depth_(parent_ ? parent_->depth_ + 1 : 0) {}
  // A life that ends with `parent`, or by itself. At the greatest depth this is the parent itself: pages open pages without end,
  // and each check walks to the root.
  [[nodiscard]] static LifePtr below(LifePtr parent) {
    return parent && parent->depth_ == kDeepest ? parent : std::make_shared<Life>(std::move(parent));
  }
  void end() { over_ = true; }
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool is_below(const LifePtr& parent) const { return parent.get() == this || parent == parent_; }

  static constexpr std::size_t kDeepest = 16;

 private:
  const LifePtr parent_;
  const std::size_t depth_;
  bool over_ = false;
};

class WorkspaceLives {
 public:
  // The life of the workspace that has this name. If no workspace has the name, the next one to have it gets this life.
  [[nodiscard]] LifePtr of(const std::string& name);
  void end(std::string_view name);
  [[nodiscard]] std::size_t size() const { return lives_.size(); }

 private:
  std::map<std::string, std::weak_ptr<Life>, std::less<>> lives_;  // names that no credential has are swept
  std::size_t sweep_at_ = 64;
};

}  // namespace caisson::auth
