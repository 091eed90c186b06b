#include "launcher/egress/door/name_table.h"

namespace caisson::egress {
namespace {

constexpr std::uint32_t kBlock = 0xc6120000, kBlockMask = 0xfffe0000;  // 198.18.0.0/15
constexpr std::uint32_t kFirst = 1;                                    // 198.18.0.0 is the block's own address

std::uint32_t number_of(const Address& address) {
  const auto& b = address.bytes;
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

Address address_at(std::uint32_t index) {
  const std::uint32_t number = kBlock + kFirst + index;
  Address out;
  for (unsigned i = 0; i < 4; ++i) out.bytes[i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  return out;
}

}  // namespace

bool is_synthetic(const Address& address) { return !address.v6 && (number_of(address) & kBlockMask) == kBlock; }

void NameTable::use(Entries::iterator entry, std::int64_t now_us) {
  entry->used_us = now_us;
  entries_.splice(entries_.end(), entries_, entry);
}

// At most a few: each call adds one name, and takes as many away as its text needs.
bool NameTable::make_room(std::size_t bytes, std::int64_t now_us) {
  while (entries_.size() >= kMostNames || bytes_ + bytes > kMostBytes) {
    if (entries_.empty() || entries_.front().used_us + kKeepUs > now_us) return false;
    const Entry& oldest = entries_.front();
    by_name_.erase(oldest.name);
    by_index_[oldest.index] = entries_.end();
    free_.push_back(oldest.index);
    bytes_ -= oldest.name.size();
    entries_.pop_front();
  }
  return true;
}

std::optional<Address> NameTable::address_of(const Name& name, std::int64_t now_us) {
  if (const auto it = by_name_.find(name.text); it != by_name_.end()) {
    use(it->second, now_us);
    return address_at(it->second->index);
  }
  if (!make_room(name.text.size(), now_us)) return std::nullopt;
  auto index = static_cast<std::uint32_t>(by_index_.size());
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    by_index_.push_back(entries_.end());
  }
  const auto entry = entries_.insert(entries_.end(), Entry{name.text, index, now_us});
  by_index_[index] = entry;
  by_name_.emplace(entry->name, entry);
  bytes_ += entry->name.size();
  return address_at(index);
}

std::optional<Name> NameTable::name_of(const Address& address, std::int64_t now_us) {
  if (!is_synthetic(address)) return std::nullopt;
  const std::uint32_t number = number_of(address) - kBlock;
  if (number < kFirst || number - kFirst >= by_index_.size() || by_index_[number - kFirst] == entries_.end()) return std::nullopt;
  const auto entry = by_index_[number - kFirst];
  use(entry, now_us);
  return Name{entry->name};
}

}  // namespace caisson::egress
