#include "agent/auth/failures.h"

#include <algorithm>

#include "agent/http/peer.h"

namespace caisson::auth {
namespace {

constexpr std::chrono::seconds kForget{60};
constexpr std::chrono::seconds kLogEvery{30};
constexpr int kFree = 3;  // a mistyped key costs nothing

}  // namespace

bool Failures::is_blocked(std::string_view remote, Clock::time_point now) const {
  const auto at = seen_.find(http::network_of(std::string(remote)));
  return at != seen_.end() && at->second.guesses >= kMaxGuesses && now - at->second.guessed <= kForget;
}

Failures::Verdict Failures::record(std::string_view remote, Clock::time_point now, bool guess) {
  if (seen_.size() >= kMaxAddresses) {
    std::erase_if(seen_, [&](const auto& item) { return now - item.second.last > kForget; });
    // Still full: the least recent entry goes. An attacker with a thousand addresses only makes us forget other attackers.
    if (seen_.size() >= kMaxAddresses) {
      const auto oldest = std::ranges::min_element(seen_, {}, [](const auto& item) { return item.second.last; });
      seen_.erase(oldest);
    }
  }
  Entry& entry = seen_[http::network_of(std::string(remote))];
  if (now - entry.last > kForget) entry.count = 0;
  if (now - entry.guessed > kForget) entry.guesses = 0;
  entry.last = now;
  entry.count = std::min(entry.count + 1, 1000);
  if (guess) {
    entry.guesses = std::min(entry.guesses + 1, kMaxGuesses);
    entry.guessed = now;
  }
  const bool log = entry.logged == Clock::time_point{} || now - entry.logged > kLogEvery;
  if (log) entry.logged = now;
  const int over = std::clamp(entry.count - kFree, 0, 8);
  const auto delay = over == 0 ? std::chrono::milliseconds(0) : std::chrono::milliseconds(25 << over);
  return {std::min<std::chrono::milliseconds>(delay, kMaxDelay), log};
}

}  // namespace caisson::auth
