#include "agent/session/output_buffer.h"

#include <algorithm>

namespace caisson::session {

void OutputBudget::grow(std::size_t bytes) {
  used_ += bytes;
  while (used_ > limit_ && !buffers_.empty()) {
    OutputBuffer* largest = *std::ranges::max_element(buffers_, {}, &OutputBuffer::held);
    if (largest->held() == 0) return;
    largest->drop_oldest((largest->held() + 1) / 2);
  }
}

OutputBuffer::OutputBuffer(std::shared_ptr<OutputBudget> budget, std::size_t cap_bytes)
    : budget_(std::move(budget)), cap_(cap_bytes) {
  budget_->buffers_.insert(this);
}

OutputBuffer::~OutputBuffer() {
  budget_->buffers_.erase(this);
  budget_->used_ -= held();
}

void OutputBuffer::append(std::string_view bytes) {
  if (head_.size() < kHeadBytes) head_.append(bytes.substr(0, kHeadBytes - head_.size()));
  while (!bytes.empty()) {
    if (chunks_.empty() || chunks_.back().size() >= kChunkBytes) chunks_.emplace_back();
    std::string& last = chunks_.back();
    const std::string_view part = bytes.substr(0, kChunkBytes - last.size());
    last.append(part);
    end_ += part.size();
    bytes.remove_prefix(part.size());
    budget_->grow(part.size());
    if (held() > cap_) drop_oldest(held() - cap_ + std::min(cap_ / 8, kChunkBytes));
  }
}

void OutputBuffer::drop_oldest(std::size_t bytes) {
  bytes = std::min(bytes, held());
  begin_ += bytes;
  budget_->used_ -= bytes;
  while (bytes > 0 && bytes >= chunks_.front().size()) {
    bytes -= chunks_.front().size();
    chunks_.pop_front();
  }
  if (bytes > 0) chunks_.front().erase(0, bytes);
}

std::string OutputBuffer::read(std::uint64_t offset, std::size_t limit) const {
  std::string out;
  if (offset >= end_) return out;
  std::size_t skip = offset > begin_ ? static_cast<std::size_t>(offset - begin_) : 0;
  out.reserve(std::min(limit, held() - skip));
  for (const std::string& chunk : chunks_) {
    if (out.size() >= limit) break;
    if (skip >= chunk.size()) {
      skip -= chunk.size();
      continue;
    }
    out.append(std::string_view(chunk).substr(skip, limit - out.size()));
    skip = 0;
  }
  return out;
}

}  // namespace caisson::session
