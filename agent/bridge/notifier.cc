#include "agent/bridge/notifier.h"

namespace caisson::bridge {

Notifier::Notifier(asio::any_io_executor executor) : state_(std::make_shared<State>(std::move(executor))) {}

void Notifier::notify_all() {
  for (Waiter& waiter : state_->waiters) {
    if (waiter.notified) continue;
    waiter.notified = true;
    waiter.timer.cancel();
  }
}

asio::awaitable<bool> Notifier::wait(std::shared_ptr<State> state, Clock::time_point deadline) {
  // Leaves the list however the coroutine ends, also when its frame is destroyed while it waits.
  struct Entry {
    State& state;
    std::list<Waiter>::iterator self;
    ~Entry() { state.waiters.erase(self); }
  };
  asio::steady_timer timer(state->executor, deadline);
  const Entry entry{*state, state->waiters.insert(state->waiters.end(), Waiter{std::move(timer)})};
  (void)co_await entry.self->timer.async_wait(as_values);  // its error says only why the wait ended; the flag says more
  co_return entry.self->notified;
}

Clock::time_point deadline_after(double seconds) {
  constexpr double kYear = 365.0 * 24 * 3600;
  if (!(seconds < kYear)) return no_deadline();
  if (!(seconds > 0)) return Clock::now();
  return Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

}  // namespace caisson::bridge
