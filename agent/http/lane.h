// Lane: admits long work (turning a large body into values, or large values into an answer) one piece at a time. After each piece
// it rests for as long as that piece took. The client, then the workspace, whose last turn is longest ago comes next. A client
// that asks for nothing but large answers therefore takes half of the time, and small requests are served in between.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "agent/http/budget.h"
#include "agent/http/coro.h"

namespace caisson::http {

class Lane : public std::enable_shared_from_this<Lane> {
 public:
  // Held during the work. Its holder awaits nothing but its own pauses. An empty Turn holds nothing.
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
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::uint64_t turns() const { return turns_; }

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

// Lets everything else run first; called between the parts of long work, each of less than a millisecond. Under run() it returns
// when nothing else is ready, to one coroutine at a time. A small request therefore waits for at most one such part, however much
// long work there is.
[[nodiscard]] asio::awaitable<void> pause();
// Like io.run(), for the one io_context whose coroutines may pause().
void run(asio::io_context& io);

}  // namespace caisson::http
