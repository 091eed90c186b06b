// Failures: counts wrong keys per remote address, to slow guessing down. Nobody is locked out: many clients can share one
// address (NAT, a container's gateway), and a right key always passes at once. Memory is bounded.
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
  [[nodiscard]] Verdict record(std::string_view remote, Clock::time_point now);
  [[nodiscard]] std::size_t size() const { return seen_.size(); }

  static constexpr std::size_t kMaxAddresses = 1024;
  static constexpr std::chrono::milliseconds kMaxDelay{2000};

 private:
  struct Entry {
    int count = 0;
    Clock::time_point last{};
    Clock::time_point logged{};
  };
  std::map<std::string, Entry, std::less<>> seen_;
};

}  // namespace caisson::auth
