#include "agent/http/rates.h"

#include <algorithm>
#include <cmath>

#include "agent/http/peer.h"

namespace caisson::http {

std::optional<std::chrono::seconds> Rates::exceeded(const std::string& remote, Clock::time_point now) {
  if (per_second_ <= 0) return std::nullopt;
  const double most = per_second_ * kBurst;
  const std::string key = network_of(remote);
  auto found = buckets_.find(key);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMaxClients) make_room(now);
    found = buckets_.emplace(key, Bucket{most, now}).first;
  }
  Bucket& bucket = found->second;
  const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(most, bucket.tokens + seconds * per_second_);
  bucket.filled = now;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return std::nullopt;
  }
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil((1 - bucket.tokens) / per_second_)));
}

// A bucket that is full again says nothing. If none is, all are forgotten at once: that costs little for each request, and a
// client with thousands of addresses gains one burst.
void Rates::make_room(Clock::time_point now) {
  const auto full = [&](const auto& entry) { return now - entry.second.filled >= std::chrono::duration<double>(kBurst); };
  if (std::erase_if(buckets_, full) < kMaxClients / 4) buckets_.clear();
}

}  // namespace caisson::http
