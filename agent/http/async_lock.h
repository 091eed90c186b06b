// AsyncLock: one coroutine at a time, first come first served, on one thread. For writers that share a socket.
#pragma once

#include <utility>

#include "agent/http/coro.h"

namespace caisson::http {

class AsyncLock {
 public:
  class Held {
   public:
    explicit Held(AsyncLock& lock) : lock_(&lock) {}
    Held(Held&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (lock_ != nullptr) lock_->release();
    }

   private:
    AsyncLock* lock_;
  };

  explicit AsyncLock(const asio::any_io_executor& executor) : turn_(executor, asio::steady_timer::time_point::max()) {}

  // A cancelled waiter leaves by exception at its next co_await and never holds the lock.
  [[nodiscard]] asio::awaitable<Held> acquire() {
    while (held_) co_await turn_.async_wait(as_values);
    held_ = true;
    co_return Held(*this);
  }

 private:
  void release() {
    held_ = false;
    turn_.cancel_one();
  }
  asio::steady_timer turn_;
  bool held_ = false;
};

}  // namespace caisson::http
