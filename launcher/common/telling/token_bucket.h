// So many at once, and so many a second after that. Pure arithmetic on the caller's clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace caisson {

class TokenBucket {
 public:
  TokenBucket(std::int64_t burst, std::int64_t per_second)
      : burst_us_(burst * kSecondUs), rate_(per_second), level_us_(burst_us_) {}
  // Whether there was one at that time. Time never runs backwards.
  bool take(std::int64_t now_us) {
    // In millionths of a token, so that no fraction is lost however often it is asked. At most one burst's worth of time counts.
    if (last_us_ != 0) level_us_ = std::min(burst_us_, level_us_ + std::min(now_us - last_us_, burst_us_ / rate_) * rate_);
    last_us_ = now_us;
    if (level_us_ < kSecondUs) return false;
    level_us_ -= kSecondUs;
    return true;
  }

 private:
  static constexpr std::int64_t kSecondUs = 1'000'000;
  std::int64_t burst_us_, rate_, level_us_, last_us_ = 0;
};

}  // namespace caisson
