// OutputBuffer: what a program wrote, addressed by absolute byte offsets from its first byte. Memory is bounded: beyond its cap
// the oldest bytes are dropped (offsets stay valid, dropped() counts them), so a flooding command is never blocked and never
// grows the agent. OutputBudget bounds all buffers of a workspace together; it is the workspace's part of the room for all
// workspaces (http::Budget).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "agent/http/budget.h"
#include "agent/services/common/keep.h"
#include "launcher/common/base/result.h"

namespace caisson::services {

class OutputBuffer;

// When the sum exceeds the limit, the largest buffer loses its older half, so a flood pays for itself. The same happens when
// another workspace needs room and this one holds most.
class OutputBudget {
 public:
  explicit OutputBudget(std::size_t limit_bytes, const std::shared_ptr<http::Budget>& all = nullptr);
  ~OutputBudget();
  OutputBudget(const OutputBudget&) = delete;
  OutputBudget& operator=(const OutputBudget&) = delete;
  [[nodiscard]] std::size_t used() const { return used_; }
  // A share for bytes that cannot be dropped: texts of commands, input that no program has read.
  [[nodiscard]] http::Budget::Share share() const;
  [[nodiscard]] Result<http::Budget::Share> share_of(std::size_t bytes) const;

 private:
  friend class OutputBuffer;
  void grow(std::size_t bytes, std::size_t head_bytes);
  void shrink(std::size_t bytes, std::size_t head_bytes);
  [[nodiscard]] bool drop_half_of_largest();
  void settle();

  std::size_t limit_;
  std::size_t used_ = 0, heads_ = 0;
  http::Budget::PayerPtr payer_;  // absent: room is not shared
  http::Budget::Share share_;
  std::set<OutputBuffer*> buffers_;
};

class OutputBuffer {
 public:
  // Keeps the first bytes besides the newest ones, so that a cut excerpt shows how the output began.
  static constexpr std::size_t kHeadBytes = 32 * 1024;
  static constexpr std::size_t kChunkBytes = 16 * 1024;

  OutputBuffer(std::shared_ptr<OutputBudget> budget, std::size_t cap_bytes);
  // From now on the bytes are stored in stream 0 or 1 of that record, as far as there is room. The buffer must be empty. end:
  // bytes that the previous agent stored there. The record outlives this.
  void keep_in(const Keep::Record& record, int stream, std::uint64_t end = 0);
  ~OutputBuffer();
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  void append(std::string_view bytes);
  [[nodiscard]] std::uint64_t end() const { return end_; }      // offset after the newest byte
  [[nodiscard]] std::uint64_t begin() const { return begin_; }  // offset of the oldest byte that is still here
  [[nodiscard]] bool dropped() const { return begin_ > 0; }
  // At most `limit` bytes from `offset`, or from begin() if that is later.
  [[nodiscard]] std::string read(std::uint64_t offset, std::size_t limit = SIZE_MAX) const;
  // The first bytes ever written; meaningful when dropped(). Empty if they had to be dropped, too.
  [[nodiscard]] std::string_view head() const { return head_; }

 private:
  friend class OutputBudget;
  struct Chunk {
    std::string heap;                    // of a buffer without a record
    std::optional<std::uint32_t> block;  // of the Keep
    // Within a block of kBlockBytes, aligned to its size; `to` only for blocks of the Keep. For heap bytes: how many are missing
    // before.
    std::size_t from = 0, to = 0;
  };
  [[nodiscard]] std::string_view view(const Chunk& chunk) const;
  [[nodiscard]] std::size_t room(const Chunk& chunk) const;
  void add_chunk();
  void give_up(const Chunk& chunk);
  void give_up_head();
  void drop_oldest(std::size_t bytes);
  void drop_half();
  [[nodiscard]] std::size_t held() const { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] std::size_t cost() const { return held() + head_.size(); }

  std::shared_ptr<OutputBudget> budget_;
  std::size_t cap_;
  std::string head_;
  std::vector<std::uint32_t> head_blocks_;  // of the Keep, while they hold the head and no chunk
  std::deque<Chunk> chunks_;                // the front chunk starts at begin_
  Keep* keep_ = nullptr;
  std::uint32_t record_ = 0;
  int stream_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace caisson::services
