#include "agent/http/budget.h"

#include <algorithm>

namespace caisson::http {

Budget::Payer::Payer(std::shared_ptr<Budget> budget, std::size_t part) : budget_(std::move(budget)), part_(part) {
  budget_->payers_.push_back(this);
}

Budget::Payer::~Payer() { std::erase(budget_->payers_, this); }

Budget::Share& Budget::Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  release();
  payers_ = std::move(other.payers_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void Budget::Share::release() { (void)resize(0); }

Room Budget::Share::resize(std::size_t bytes) {
  if (payers_.empty() || bytes == bytes_) return Room::granted;
  Budget& budget = *payers_.front()->budget_;
  if (bytes > bytes_) return budget.grow(*this, bytes);
  const std::size_t less = bytes_ - bytes;
  for (const PayerPtr& payer : payers_) payer->used_ -= less;
  budget.used_ -= less;
  bytes_ = bytes;
  return Room::granted;
}

// True: it holds less than before. This is measured, because a payer that only claimed to have freed bytes would be asked for
// ever.
bool Budget::gave(Payer& payer, const Payer& asker) {
  const std::size_t before = payer.used_;
  return payer.give_back && payer.give_back(asker) && payer.used_ < before;
}

// Giving back may shrink this very share. The request then adds to what is left of it; measured from the old size, the largest
// holder would have to give again and again.
Room Budget::grow(Share& share, std::size_t bytes) {
  const std::size_t more = bytes - share.bytes_;
  while (true) {
    Payer* over = nullptr;
    for (const PayerPtr& payer : share.payers_)
      if (over == nullptr && payer->used_ + more > payer->part_) over = payer.get();
    const auto small = [&](const PayerPtr& payer) { return payer->used_ + more <= least_; };
    if (over == nullptr && (used_ + more <= total_ || std::ranges::all_of(share.payers_, small))) {
      for (const PayerPtr& payer : share.payers_) payer->used_ += more;
      used_ += more;
      share.bytes_ += more;
      return Room::granted;
    }
    const bool made = over != nullptr ? gave(*over, *share.payers_.front()) : make_room(*share.payers_.front());
    if (!made) return over != nullptr ? Room::part_full : Room::full;
  }
}

// The largest payer that holds at least as much as the asker and has something to give.
bool Budget::make_room(const Payer& asker) {
  std::vector<Payer*> able;
  for (Payer* payer : payers_)
    if (payer->give_back && payer->used_ > 0 && payer->used_ >= asker.used_) able.push_back(payer);
  std::ranges::sort(able, std::ranges::greater{}, &Payer::used);
  return std::ranges::any_of(able, [&](Payer* payer) { return gave(*payer, asker); });
}

}  // namespace caisson::http
