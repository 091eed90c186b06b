// One connection to an upstream proxy that speaks TLS: plain bytes at one end, which the dialer and then the door have, TLS at
// the other. The proxy's certificate must be for its host.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/common/telling/shares.h"
#include "launcher/egress/loop/launcher_line.h"
#include "launcher/egress/opener/tls.h"
#include "launcher/egress/opener/trust.h"

namespace caisson::egress {

class Wrapped {
 public:
  struct To {
    std::uint64_t workspace;
    std::uint16_t port;
    std::string host, domain;
  };
  // over: called once, from the loop; it may destroy this.
  Wrapped(Poll& poll, LauncherLine& launcher, const Trust& trust, To to, Fd proxy, Fd plain, Share share,
          std::function<void(Wrapped&)> over);
  Wrapped(const Wrapped&) = delete;
  Wrapped& operator=(const Wrapped&) = delete;
  void begin() { talk_.emplace(talk()); }

  std::list<std::unique_ptr<Wrapped>>::iterator entry;

 private:
  static constexpr std::int64_t kHandshakeUs = 15'000'000, kIdleUs = 86'400'000'000,  // the door ends what is idle
      kHalfUs = 300'000'000;                                                          // of one whose other way is over
  enum class Next { again, wait, over };
  [[nodiscard]] Task<bool> talk();
  [[nodiscard]] Task<bool> meet();
  [[nodiscard]] Next turn();
  [[nodiscard]] Next move_up();
  [[nodiscard]] Next move_down();
  void tell(std::string_view refusal, std::string_view detail);

  Poll& poll_;
  LauncherLine& launcher_;
  const Trust& trust_;
  const To to_;
  const Share share_;
  Stream proxy_, plain_;
  std::unique_ptr<Tls> tls_;
  std::string up_, down_;                     // not taken by the other end yet
  bool up_over_ = false, down_over_ = false;  // one that sends no more may still be sent to
  std::size_t moved_ = 0;                     // bytes, since the loop had its turn
  std::function<void(Wrapped&)> when_over_;
  Poll::Timer over_;
  std::optional<Task<bool>> talk_;  // the last member: what it uses outlives it
};

}  // namespace caisson::egress
