// Notifier: lets coroutines wait for "something changed" with a deadline. Waiters re-check their own condition after each
// wake-up. One thread (the agent's), so between the check and the wait nothing can be missed.
#pragma once

#include <chrono>
#include <list>
#include <memory>

#include "agent/http/coro.h"

namespace caisson::bridge {

using Clock = std::chrono::steady_clock;

class Notifier {
 public:
  explicit Notifier(asio::any_io_executor executor);

  // Wakes all current waiters.
  void notify_all();
  // true: notified. false: the deadline passed, or the waiting coroutine was cancelled.
  [[nodiscard]] asio::awaitable<bool> wait_until(Clock::time_point deadline) { return wait(state_, deadline); }

 private:
  struct Waiter {
    asio::steady_timer timer;
    bool notified = false;
  };
  // Shared with the waiting coroutines, so that a notifier may die before them.
  struct State {
    explicit State(asio::any_io_executor e) : executor(std::move(e)) {}
    asio::any_io_executor executor;
    std::list<Waiter> waiters;
  };
  static asio::awaitable<bool> wait(std::shared_ptr<State> state, Clock::time_point deadline);

  std::shared_ptr<State> state_;
};

// A deadline `seconds` from now, capped at a year.
[[nodiscard]] Clock::time_point deadline_after(double seconds);
[[nodiscard]] inline Clock::time_point no_deadline() { return Clock::now() + std::chrono::hours(24 * 365); }

}  // namespace caisson::bridge
