// Pace: what a connection is doing, and how fast it moves bytes. When room is needed the slowest connections end, and only those
// that wait for their client.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace caisson::http {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  enum class At { idle, head, body, serving, answer };

  void begin(At at, Clock::time_point now = Clock::now()) {
    at_ = at;
    window_ = now;
    bytes_ = 0;
    before_.reset();
  }
  void moved(std::size_t bytes, Clock::duration window, Clock::time_point now = Clock::now()) {
    if (now - window_ >= window) {
      before_ = since(now);
      window_ = now;
      bytes_ = 0;
    }
    bytes_ += bytes;
  }
  [[nodiscard]] At at() const { return at_; }
  // Bytes a second over the last `window` or slightly more; an earlier burst does not count. nullopt: the connection is too young
  // to tell, or waits for us.
  [[nodiscard]] std::optional<double> slow(Clock::duration window, Clock::time_point now = Clock::now()) const {
    if (at_ == At::serving || waits_for_us) return std::nullopt;
    // All of bytes_ moved in its first `window`.
    if (now - window_ >= 2 * window) return 0.0;
    return now - window_ >= window ? std::optional(since(now)) : before_;
  }
  bool waits_for_us = false;  // for room

 private:
  [[nodiscard]] double since(Clock::time_point now) const {
    return static_cast<double>(bytes_) / std::chrono::duration<double>(now - window_).count();
  }
  At at_ = At::idle;
  Clock::time_point window_ = Clock::now();
  std::size_t bytes_ = 0;
  std::optional<double> before_;
};

}  // namespace caisson::http
