// What the connections of one workspace may take: how many at once, how many new ones a second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "launcher/common/telling/token_bucket.h"
#include "launcher/egress/list/list.h"
#include "launcher/egress/loop/byte_budget.h"

namespace caisson::egress {

class Admission {
 public:
  explicit Admission(const Limits& limits)
      : connections_(limits.connections),
        new_(std::int64_t{4} * std::max(limits.connections_per_second, 1U), std::max(limits.connections_per_second, 1U)) {}
  enum class Answer { admitted, too_many, too_fast };
  // `now`: how many there are already.
  [[nodiscard]] Answer admit(std::size_t now, std::int64_t now_us) {
    if (now >= connections_) return Answer::too_many;
    return new_.take(now_us) ? Answer::admitted : Answer::too_fast;
  }

 private:
  std::size_t connections_;
  TokenBucket new_;
};

}  // namespace caisson::egress
