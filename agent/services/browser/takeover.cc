#include "agent/services/browser/takeover.h"

#include "agent/metrics/registry.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {

Takeover::State Takeover::begin(bool exclusive, bool view_only, std::int64_t seconds) {
  constexpr std::int64_t kNs = 1'000'000'000;
  state_ = State{.exclusive = exclusive, .view_only = view_only, .until = sys::realtime_ns() / kNs + seconds};
  ends_ = bridge::Clock::now() + std::chrono::seconds(seconds);
  metrics::registry().add(metrics::Id::takeovers, {exclusive ? "exclusive" : "shared"});
  changed_.notify_all();
  return *state_;
}

void Takeover::end() {
  state_.reset();
  changed_.notify_all();
}

std::optional<Takeover::State> Takeover::current() const {
  return state_ && bridge::Clock::now() < ends_ ? state_ : std::nullopt;
}

bool Takeover::is_exclusive() const {
  const std::optional<State> now = current();
  return now && now->exclusive;
}

asio::awaitable<void> Takeover::await_end() {
  while (is_exclusive()) (void)co_await changed_.wait_until(ends_);
}

}  // namespace caisson::services
