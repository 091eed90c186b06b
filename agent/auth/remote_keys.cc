#include "agent/auth/remote_keys.h"

#include <algorithm>

#include "agent/http/log.h"

namespace caisson::auth {
namespace {

constexpr std::chrono::seconds kAfterFailure{10};

}  // namespace

void RemoteKeys::ask(Clock::time_point now) {
  asked_ = ever_asked_ = true;
  asked_at_ = now;
  settings_.ask();
}

bool RemoteKeys::refresh(Clock::time_point now) {
  if (!on()) return false;
  if (asked_ ? now - asked_at_ >= kLost : now >= next_) ask(now);
  if (keys_.empty() || now - fetched_at_ < settings_.stale) return false;
  log::error("the keys of CAISSON_JWKS_URL are too old: none of them counts any more");
  keys_.clear();
  set_.clear();
  return true;
}

bool RemoteKeys::failed(std::string why, Clock::time_point now) {
  next_ = now + std::min(settings_.period, kAfterFailure);
  if (std::exchange(fault_, why) != why) log::error("CAISSON_JWKS_URL, of which nothing is taken: " + why);
  return false;
}

bool RemoteKeys::take(Result<std::string> set, Clock::time_point now) {
  asked_ = false;
  wake();
  if (!set) return failed(set.error().text(), now);
  auto keys = *set == set_ ? Result<KeySet>(keys_) : parse_jwks(*set);
  if (!keys) return failed(keys.error().text(), now);
  next_ = now + settings_.period;
  fetched_at_ = now;
  fault_.clear();
  if (*set == set_) return false;
  set_ = std::move(*set);
  keys_ = std::move(*keys);
  log::info("keys for tokens were fetched from CAISSON_JWKS_URL");
  return true;
}

bool RemoteKeys::expect_new(Clock::time_point now) {
  if (!on()) return false;
  if (asked_) return now - asked_at_ < kWait;
  if (ever_asked_ && now - asked_at_ < kUnknownEvery) return false;
  ask(now);
  return true;
}

void RemoteKeys::wake() {
  for (asio::steady_timer* waiting : waiting_) waiting->cancel();
}

asio::awaitable<void> RemoteKeys::arrival() {
  struct Place {  // left when this coroutine ends, however that is
    std::list<asio::steady_timer*>& list;
    std::list<asio::steady_timer*>::iterator at;
    ~Place() { list.erase(at); }
  };
  if (!asked_) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, asked_at_ + kWait);
  const Place place{waiting_, waiting_.insert(waiting_.end(), &timer)};
  co_await timer.async_wait(as_values);
}

}  // namespace caisson::auth
