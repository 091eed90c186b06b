// Failures: counts wrong keys per sender, to slow guessing down. A sender is a remote address; requests that other sites make
// browsers send from that address have a sender of their own (sender_of in gate.h). Many clients can share one address (NAT, a
// container's gateway), so a credential that is known to be right always passes at once; after kMaxGuesses wrong ones, others are
// not looked at until a minute has passed without a wrong one. Memory is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace caisson::auth {

class Failures {
 public:
  using Clock = std::chrono::steady_clock;

  struct Verdict {
    std::chrono::milliseconds delay;  // before the refusal is sent
    bool log;                         // at most one line per address and half minute
  };
  // guess: the request had a credential, which was wrong.
  [[nodiscard]] Verdict record(std::string_view remote, Clock::time_point now, bool guess = true);
  // Unknown credentials of this address are not looked at.
  [[nodiscard]] bool is_blocked(std::string_view remote, Clock::time_point now) const;
  [[nodiscard]] std::size_t size() const { return seen_.size(); }

  static constexpr std::size_t kMaxAddresses = 1024;
  static constexpr int kMaxGuesses = 300;
  static constexpr std::chrono::milliseconds kMaxDelay{2000};

 private:
  struct Entry {
    int count = 0, guesses = 0;
    Clock::time_point last{}, guessed{};  // guessed: a request without a credential prolongs no lock-out
    Clock::time_point logged{};
  };
  std::map<std::string, Entry, std::less<>> seen_;
};

}  // namespace caisson::auth
