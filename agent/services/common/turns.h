// Turns: a queue that admits one coroutine at a time, strictly in the order in which they asked. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "agent/bridge/notifier.h"

namespace caisson::services {

class Turns {
 public:
  explicit Turns(asio::any_io_executor executor) : changed_(std::move(executor)) {}

  // A place in the queue. Destroying it leaves the queue, also before its turn. It must not outlive the queue.
  class Place {
   public:
    explicit Place(Turns& turns) : turns_(turns), number_(turns.next_++) { turns_.queue_.push_back(number_); }
    ~Place() {
      std::erase(turns_.queue_, number_);
      turns_.changed_.notify_all();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    [[nodiscard]] bool first() const { return turns_.queue_.front() == number_; }
    [[nodiscard]] asio::awaitable<bool> changed() { return turns_.changed_.wait_until(bridge::no_deadline()); }

   private:
    Turns& turns_;
    const std::uint64_t number_;
  };

  [[nodiscard]] std::size_t size() const { return queue_.size(); }
  // Makes every waiter check again.
  void wake() { changed_.notify_all(); }

 private:
  std::deque<std::uint64_t> queue_;
  std::uint64_t next_ = 0;
  bridge::Notifier changed_;
};

}  // namespace caisson::services
