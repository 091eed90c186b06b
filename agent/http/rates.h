// Rates: how many requests one client may make, as a bucket of tokens for each address. Its memory is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

namespace caisson::http {

class Rates {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxClients = 4096;
  static constexpr double kBurst = 2;  // seconds' worth of requests that may come at once

  // 0: no limit.
  explicit Rates(double per_second) : per_second_(per_second) {}
  // Counts one request. nullopt: it may be served; otherwise the client may try again after that many seconds.
  [[nodiscard]] std::optional<std::chrono::seconds> exceeded(const std::string& remote, Clock::time_point now = Clock::now());
  [[nodiscard]] std::size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens;
    Clock::time_point filled;
  };
  void make_room(Clock::time_point now);
  const double per_second_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace caisson::http
