// How many bytes a second the connections of a domain may move. Pure arithmetic on the caller's clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace caisson::egress {

// Bytes both ways together. What may move grows with time up to a quarter of a second's worth, at least 64 KiB, so that a slow
// limit still moves whole segments.
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t per_second)
      : per_second_(std::min<std::uint64_t>(per_second, 1ULL << 40)),
        most_(std::max<std::uint64_t>(per_second_ / 4, 64 * 1024)),
        left_(most_) {}
  [[nodiscard]] std::size_t left(std::int64_t now_us) {
    if (per_second_ == 0) return SIZE_MAX;
    const auto elapsed_us = static_cast<std::uint64_t>(std::clamp<std::int64_t>(now_us - last_us_, 0, 1'000'000));
    const std::uint64_t more = per_second_ * elapsed_us / 1'000'000;
    if (more > 0) left_ = std::min(most_, left_ + more), last_us_ = now_us;
    return left_;
  }
  void spend(std::size_t bytes) { left_ -= std::min<std::uint64_t>(left_, bytes); }

 private:
  const std::uint64_t per_second_, most_;
  std::uint64_t left_;
  std::int64_t last_us_ = 0;
};

}  // namespace caisson::egress
