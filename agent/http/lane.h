// Lane: work that keeps the one thread busy for long (a large body becomes values, large values become an answer), one at a time.
// It rests after each for as long as that took, and whoever waited longest since its last turn comes first, by client, then by
// workspace: so a client that asks for nothing but large answers takes a half of the time, and small requests come in between.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "agent/http/budget.h"
#include "agent/http/coro.h"

namespace caisson::http {

class Lane : public std::enable_shared_from_this<Lane> {
 public:
  // Held while the work is done: its holder waits for nothing but its own pauses. An empty one is nobody's turn.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&& other) noexcept {
      std::swap(lane_, other.lane_);
      return *this;
    }
    ~Turn() {
      if (lane_) lane_->release();
    }

   private:
    friend class Lane;
    explicit Turn(std::shared_ptr<Lane> lane) : lane_(std::move(lane)) {}
    std::shared_ptr<Lane> lane_;
  };

  explicit Lane(const asio::any_io_executor& executor) : rest_(executor) {}
  // A cancelled waiter leaves by exception and holds nothing.
  [[nodiscard]] static asio::awaitable<Turn> take(std::shared_ptr<Lane> lane, Budget::PayerPtr client,
                                                  Budget::PayerPtr workspace);

 private:
  using Clock = asio::steady_timer::clock_type;
  struct Waiting;
  void begin(Budget::Payer& client, Budget::Payer& workspace);
  void release();
  void next();

  asio::steady_timer rest_;
  bool busy_ = false, resting_ = false;
  Clock::time_point since_, rest_until_;
  std::uint64_t turns_ = 0;
  std::list<Waiting*> waiting_;
};

// Lets everything else go first, between the parts of long work, each of less than a millisecond. Under run() it returns when
// nothing else is ready, for one coroutine at a time: a small request waits for at most one such part, however many long works
// there are.
[[nodiscard]] asio::awaitable<void> pause();
// As io.run(). One io_context of the process is run by it, and pauses are its own.
void run(asio::io_context& io);

}  // namespace caisson::http
