// RemoteKeys: the key set of CAISSON_JWKS_URL, which somebody else fetches (bridge/courier_client.h). It is asked for when a
// request comes and the set is older than the period, or has not the key that a token names. A set that cannot be had or read
// changes nothing until the last good one is too old; then no key of it counts.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>

#include "agent/auth/jwk.h"
#include "agent/http/coro.h"

namespace caisson::auth {

struct RemoteSettings {
  std::function<void()> ask = {};      // empty: there is no such set
  std::chrono::seconds period{300};    // CAISSON_JWKS_SECONDS
  std::chrono::seconds stale{86'400};  // CAISSON_JWKS_STALE_SECONDS
};

class RemoteKeys {
 public:
  using Clock = std::chrono::steady_clock;
  // Tokens that name unknown keys can have the set fetched no more often, and are waited for no longer.
  static constexpr std::chrono::seconds kUnknownEvery{10}, kWait{3};
  // An answer that has not come by then does not come: who fetches has been started again meanwhile.
  static constexpr std::chrono::seconds kLost{90};

  explicit RemoteKeys(RemoteSettings settings) : settings_(std::move(settings)) {}

  // Asks when it is time. True: the keys have become too old and are gone.
  [[nodiscard]] bool refresh(Clock::time_point now);
  // What was fetched. True: it has replaced the keys.
  [[nodiscard]] bool take(Result<std::string> set, Clock::time_point now);
  // Of a token that no key verifies by its name. True: a new set may come soon, wait for it.
  [[nodiscard]] bool expect_new(Clock::time_point now);
  // Until an answer is there, or the time that a token is waited for is over.
  [[nodiscard]] asio::awaitable<void> arrival();

  [[nodiscard]] bool on() const { return settings_.ask != nullptr; }
  [[nodiscard]] const KeySet& keys() const { return keys_; }

 private:
  void ask(Clock::time_point now);
  void wake();
  bool failed(std::string why, Clock::time_point now);

  RemoteSettings settings_;
  KeySet keys_;
  std::string set_;    // that they are from
  std::string fault_;  // of the last answer
  bool asked_ = false, ever_asked_ = false;
  Clock::time_point asked_at_{}, next_{}, fetched_at_{};
  std::list<asio::steady_timer*> waiting_;
};

}  // namespace caisson::auth
