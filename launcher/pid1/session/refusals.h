// How many refused requests of one client are recorded one by one: a token bucket, so that a hostile agent cannot fill the disk
// that all sessions need for their logs. What finds no token is counted, and the counts are recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace caisson::session {

class Refusals {
 public:
  static constexpr std::int64_t kPeriodUs = 1'000'000, kBurst = 64;  // 64 at once, then one a second
  static constexpr std::int64_t kReportUs = 10'000'000;              // counts are recorded this often
  static constexpr std::size_t kMaxText = 1024;                      // of what one record quotes

  // Whether this one is recorded; else it is counted.
  bool take(std::int64_t now_us) {
    if (last_us_ != 0) credit_us_ = std::min(kBurst * kPeriodUs, credit_us_ + now_us - last_us_);
    last_us_ = now_us;
    if (credit_us_ >= kPeriodUs) return credit_us_ -= kPeriodUs, true;
    return ++dropped_, false;
  }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  std::int64_t credit_us_ = kBurst * kPeriodUs, last_us_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace caisson::session
