// A bound that workspaces share: none takes more than half of what is left, so there is something for whoever comes next. One
// that is alone has a third of it all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace caisson {

// One of it, as long as there is a copy. nullptr: none.
using Share = std::shared_ptr<const void>;

class Shares {
 public:
  explicit Shares(std::size_t most) : most_(most) {}
  Shares(const Shares&) = delete;
  // nullptr: its share is used up for now.
  [[nodiscard]] Share take(std::uint64_t whose) {
    const auto own = taken_->of.find(whose);
    const std::size_t has = own != taken_->of.end() ? own->second : 0;
    if (has >= (most_ - taken_->all + 1) / 2) return nullptr;
    ++taken_->all, ++taken_->of[whose];
    return {taken_.get(), [taken = taken_, whose](const void*) { taken->give_back(whose); }};
  }

 private:
  struct Taken {
    void give_back(std::uint64_t whose) {
      --all;
      if (--of.at(whose) == 0) of.erase(whose);
    }
    std::size_t all = 0;
    std::map<std::uint64_t, std::size_t> of;
  };
  const std::size_t most_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();  // it may outlive us, with those who have one
};

}  // namespace caisson
