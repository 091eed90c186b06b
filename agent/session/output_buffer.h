// OutputBuffer: what a program wrote, addressed by absolute byte offsets from its first byte. Memory is bounded: beyond
// its cap the oldest bytes are dropped (offsets stay right, dropped() says how many), so a flooding command is drained
// and never blocked, and never grows the agent. OutputBudget bounds all buffers of the process together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace caisson::session {

class OutputBuffer;

// When the sum is over the limit, the largest buffer loses its older half: a flood pays for itself.
class OutputBudget {
 public:
  explicit OutputBudget(std::size_t limit_bytes) : limit_(limit_bytes) {}
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  friend class OutputBuffer;
  void grow(std::size_t bytes);

  std::size_t limit_;
  std::size_t used_ = 0;
  std::set<OutputBuffer*> buffers_;
};

class OutputBuffer {
 public:
  // The first bytes are kept besides the newest ones, so that a cut excerpt shows how the output began.
  static constexpr std::size_t kHeadBytes = 32 * 1024;
  static constexpr std::size_t kChunkBytes = 16 * 1024;

  OutputBuffer(std::shared_ptr<OutputBudget> budget, std::size_t cap_bytes);
  ~OutputBuffer();
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  void append(std::string_view bytes);
  [[nodiscard]] std::uint64_t end() const { return end_; }      // offset after the newest byte
  [[nodiscard]] std::uint64_t begin() const { return begin_; }  // offset of the oldest byte that is still here
  [[nodiscard]] bool dropped() const { return begin_ > 0; }
  // Bytes from `offset` (or from begin(), if that is later), at most `limit`.
  [[nodiscard]] std::string read(std::uint64_t offset, std::size_t limit = SIZE_MAX) const;
  // The first bytes ever written; meaningful when dropped().
  [[nodiscard]] std::string_view head() const { return head_; }

 private:
  friend class OutputBudget;
  void drop_oldest(std::size_t bytes);
  [[nodiscard]] std::size_t held() const { return static_cast<std::size_t>(end_ - begin_); }

  std::shared_ptr<OutputBudget> budget_;
  std::size_t cap_;
  std::string head_;
  std::deque<std::string> chunks_;  // the front chunk starts at begin_
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace caisson::session
