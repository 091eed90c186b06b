// Quota: how many objects of a kind may exist at a time. Their maker counts one in `used` before it awaits anything, and gives it
// back. One thread.
#pragma once

#include <functional>

#include "agent/bridge/notifier.h"
#include "agent/http/async_lock.h"

namespace caisson::services {

class Quota {
 public:
  Quota(const asio::any_io_executor& executor, std::size_t limit) : most(limit), turn_(executor), freed_(executor) {}
  std::size_t used = 0, most;

  void give_back() {
    --used;
    freed_.notify_all();
  }
  // Waits for room, in order: only the first waiter checks. enough: returns true to give up.
  [[nodiscard]] asio::awaitable<void> room(std::function<bool()> enough = nullptr) {
    const http::AsyncLock::Held first = co_await turn_.acquire();
    while (used >= most && !(enough && enough())) (void)co_await freed_.wait_until(bridge::Clock::now() + kLookAgain);
  }

 private:
  static constexpr std::chrono::seconds kLookAgain{5};
  http::AsyncLock turn_;
  bridge::Notifier freed_;
};

}  // namespace caisson::services
