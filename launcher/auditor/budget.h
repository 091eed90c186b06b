// How much one session may have on record: a bucket of tokens, then only numbers, then nothing because nobody listens any more.
// Pure arithmetic on the caller's clock.
#pragma once

#include <cstdint>

#include "launcher/common/telling/token_bucket.h"

namespace caisson::auditor {

inline constexpr std::int64_t kBurst = 2000, kPerSecond = 100;  // records of one session
inline constexpr std::int64_t kAllBurst = 4000,
                              kAllPerSecond = 1000;      // of all sessions: what the launcher can write beside its work
inline constexpr std::uint64_t kMostPerSecond = 20'000;  // calls of one session, recorded or counted

// Where paths are observed, of one session: records of refused ones; calls that are looked at, whatever they name.
inline constexpr std::int64_t kPathBurst = 500, kPathPerSecond = 50;
inline constexpr std::uint64_t kMostPathsPerSecond = 50'000;

enum class Verdict { record, count, close };

class Budget {
 public:
  explicit Budget(std::int64_t burst = kBurst, std::int64_t per_second = kPerSecond,
                  std::uint64_t most_per_second = kMostPerSecond)
      : own_(burst, per_second), most_per_second_(most_per_second) {}
  // Of one more call. False: there are too many of them to be looked at.
  bool look(std::int64_t now_us) {
    if (now_us - window_us_ >= 1'000'000) window_us_ = now_us, calls_ = 0;
    return ++calls_ <= most_per_second_;
  }
  bool record(std::int64_t now_us, TokenBucket& all) { return own_.take(now_us) && all.take(now_us); }
  // Both. `close`: count it, and give the listener up.
  Verdict take(std::int64_t now_us, TokenBucket& all) {
    if (!look(now_us)) return Verdict::close;
    return record(now_us, all) ? Verdict::record : Verdict::count;
  }

 private:
  TokenBucket own_;
  const std::uint64_t most_per_second_;
  std::int64_t window_us_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace caisson::auditor
