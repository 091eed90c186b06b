#include "agent/services/common/output_buffer.h"

#include <algorithm>

namespace caisson::services {

OutputBudget::OutputBudget(std::size_t limit_bytes, const std::shared_ptr<http::Budget>& all) : limit_(limit_bytes) {
  if (!all) return;
  payer_ = all->open(limit_bytes);
  payer_->give_back = [this](const http::Budget::Payer&) { return drop_half_of_largest(); };
  share_ = share();
}

OutputBudget::~OutputBudget() {
  if (payer_) payer_->give_back = nullptr;
}

http::Budget::Share OutputBudget::share() const { return payer_ ? http::Budget::Share({payer_}) : http::Budget::Share(); }

Result<http::Budget::Share> OutputBudget::share_of(std::size_t bytes) const {
  http::Budget::Share made = share();
  if (made.resize(bytes) != http::Room::granted)
    return fail(Code::limit,
                "the workspace has no room for " + std::to_string(bytes) + " bytes more: end commands or sessions first");
  return made;
}

void OutputBudget::grow(std::size_t bytes, std::size_t head_bytes) {
  used_ += bytes;
  heads_ += head_bytes;
  while (used_ > limit_ && drop_half_of_largest()) {
  }
  // This very budget may have made room, so the request is counted anew.
  while (share_.bytes() < used_ + heads_ && share_.resize(used_ + heads_) != http::Room::granted)
    if (!drop_half_of_largest()) break;
  settle();
}

void OutputBudget::shrink(std::size_t bytes, std::size_t head_bytes) {
  used_ -= bytes;
  heads_ -= head_bytes;
  settle();
}

void OutputBudget::settle() {
  if (share_.bytes() > used_ + heads_) (void)share_.resize(used_ + heads_);
}

bool OutputBudget::drop_half_of_largest() {
  if (buffers_.empty()) return false;
  OutputBuffer* const largest = *std::ranges::max_element(buffers_, {}, &OutputBuffer::cost);
  if (largest->cost() == 0) return false;
  largest->drop_half();
  return true;
}

OutputBuffer::OutputBuffer(std::shared_ptr<OutputBudget> budget, std::size_t cap_bytes)
    : budget_(std::move(budget)), cap_(cap_bytes) {
  budget_->buffers_.insert(this);
}

OutputBuffer::~OutputBuffer() {
  budget_->buffers_.erase(this);
  budget_->shrink(held(), head_.size());
  for (const Chunk& chunk : chunks_)
    if (chunk.block) keep_->free_block(*chunk.block);
  for (const std::uint32_t block : head_blocks_) keep_->free_block(block);
}

void OutputBuffer::keep_in(const Keep::Record& record, int stream, std::uint64_t end) {
  keep_ = record.keep();
  if (keep_ == nullptr) return;
  constexpr std::uint64_t kMostEver = std::uint64_t{1} << 53;  // the largest number that JSON clients read exactly
  if (end > kMostEver) end = 0;
  record_ = record.index();
  stream_ = stream;
  std::map<std::uint32_t, std::uint32_t> blocks = keep_->blocks_of(record_, stream);
  const std::uint64_t last = end == 0 ? 0 : (end - 1) / kChunkBytes;
  // Only whole blocks without a gap before the end count; for the head, as many as its size needs.
  end_ = begin_ = end;
  for (std::uint64_t number = last; end > 0; --number) {
    const auto found = blocks.find(static_cast<std::uint32_t>(number));
    if (number > UINT32_MAX || found == blocks.end()) break;
    const std::size_t to = number == last ? static_cast<std::size_t>(end - number * kChunkBytes) : kChunkBytes;
    chunks_.push_front({.heap = {}, .block = found->second, .from = 0, .to = to});
    blocks.erase(found);
    begin_ = number * kChunkBytes;
    if (number == 0) break;
  }
  for (std::uint32_t number = 0; number < kHeadBytes / kChunkBytes && end > 0; ++number) {
    const auto chunk = begin_ == 0 && number < chunks_.size() ? std::optional(chunks_[number]) : std::nullopt;
    const auto found = blocks.find(number);
    if (chunk) {
      head_.append(view(*chunk));
    } else if (found != blocks.end() && end > std::uint64_t{number + 1} * kChunkBytes && head_.size() == number * kChunkBytes) {
      head_.append(keep_->at(found->second), kChunkBytes);
      head_blocks_.push_back(found->second);
      blocks.erase(found);
    } else {
      break;
    }
  }
  for (const auto& [number, block] : blocks) keep_->free_block(block);
  budget_->grow(held(), head_.size());
  if (held() > cap_) drop_oldest(held() - cap_);
}

std::string_view OutputBuffer::view(const Chunk& chunk) const {
  return chunk.block ? std::string_view(keep_->at(*chunk.block) + chunk.from, chunk.to - chunk.from)
                     : std::string_view(chunk.heap);
}

std::size_t OutputBuffer::room(const Chunk& chunk) const {
  return kChunkBytes - (chunk.block ? chunk.to : chunk.from + chunk.heap.size());
}

// A block holds the bytes that belong to its number, so its position follows from the number alone. It is allocated only when its
// first byte arrives: a later agent reads every block up to the end as this buffer's, so none may hold another buffer's bytes.
void OutputBuffer::add_chunk() {
  Chunk made;
  const std::uint64_t number = end_ / kChunkBytes;
  made.from = static_cast<std::size_t>(end_ % kChunkBytes);
  if (keep_ != nullptr && number <= UINT32_MAX && made.from == 0)
    made.block = keep_->take_block(record_, stream_, static_cast<std::uint32_t>(number));
  chunks_.push_back(std::move(made));
}

void OutputBuffer::append(std::string_view bytes) {
  if (end_ < kHeadBytes && head_.size() == end_) {
    const std::string_view first = bytes.substr(0, kHeadBytes - head_.size());
    head_.append(first);
    budget_->grow(0, first.size());
  }
  while (!bytes.empty()) {
    if (chunks_.empty() || room(chunks_.back()) == 0) add_chunk();
    Chunk& last = chunks_.back();
    const std::string_view part = bytes.substr(0, room(last));
    if (last.block) {
      part.copy(keep_->at(*last.block) + last.to, part.size());
      last.to += part.size();
    } else {
      last.heap.append(part);
    }
    end_ += part.size();
    bytes.remove_prefix(part.size());
    budget_->grow(part.size(), 0);
    if (held() > cap_) drop_oldest(held() - cap_ + std::min(cap_ / 8, kChunkBytes));
  }
}

void OutputBuffer::give_up(const Chunk& chunk) {
  if (!chunk.block) return;
  const std::uint64_t number = (begin_ - 1) / kChunkBytes;  // begin_ has passed it already
  if (number < kHeadBytes / kChunkBytes && head_blocks_.size() == number && head_.size() >= (number + 1) * kChunkBytes)
    head_blocks_.push_back(*chunk.block);
  else keep_->free_block(*chunk.block);
}

void OutputBuffer::give_up_head() {
  for (const std::uint32_t block : std::exchange(head_blocks_, {})) keep_->free_block(block);
}

void OutputBuffer::drop_oldest(std::size_t bytes) {
  bytes = std::min(bytes, held());
  const std::size_t dropped = bytes;
  while (bytes > 0 && bytes >= view(chunks_.front()).size()) {
    const std::size_t size = view(chunks_.front()).size();
    if (chunks_.size() == 1 && room(chunks_.front()) > 0) break;  // the next bytes continue in it
    bytes -= size;
    begin_ += size;
    if (size > 0) give_up(chunks_.front());
    else if (chunks_.front().block) keep_->free_block(*chunks_.front().block);
    chunks_.pop_front();
  }
  begin_ += bytes;
  if (bytes > 0 && chunks_.front().block) chunks_.front().from += bytes;
  else if (bytes > 0) chunks_.front().heap.erase(0, bytes), chunks_.front().from += bytes;
  budget_->shrink(dropped, 0);
}

void OutputBuffer::drop_half() {
  if (held() > 0) return drop_oldest((held() + 1) / 2);
  const std::size_t size = head_.size();
  head_ = std::string();
  give_up_head();
  budget_->shrink(0, size);
}

std::string OutputBuffer::read(std::uint64_t offset, std::size_t limit) const {
  std::string out;
  if (offset >= end_ || held() == 0) return out;
  std::size_t skip = offset > begin_ ? static_cast<std::size_t>(offset - begin_) : 0;
  out.reserve(std::min(limit, held() - skip));
  // All chunks but the first and the last are full, so an offset gives its chunk directly: readers ask for a few bytes at a time.
  std::size_t index = 0;
  if (skip >= view(chunks_.front()).size()) {
    skip -= view(chunks_.front()).size();
    index = 1 + skip / kChunkBytes;
    skip %= kChunkBytes;
  }
  for (; index < chunks_.size() && out.size() < limit; ++index) {
    out.append(view(chunks_[index]).substr(skip, limit - out.size()));
    skip = 0;
  }
  return out;
}

}  // namespace caisson::services
