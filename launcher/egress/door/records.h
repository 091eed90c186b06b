// What a workspace's connections leave on record, and what of it is only counted: each end of a connection and each refusal is an
// event, as many as the budget has; then numbers say how many there were.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/word.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/common/telling/token_bucket.h"
#include "launcher/egress/door/way.h"
#include "launcher/egress/list/host.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

// How a session asked.
enum class Via { transparent, connect, http, socks5, dns };
constexpr std::string_view words(Via) { return "transparent connect http socks5 dns"; }

struct Facts {
  std::string host;         // canonical; of a refusal also what the session wrote, then `detail` says so
  std::string_view why;     // the rule's, of a list that is still there
  std::string_view detail;  // a literal
  std::string_view ended;   // a literal: how a connection ended
  std::uint64_t up = 0, down = 0;
  std::int64_t since_us = 0;
  std::optional<Address> address;  // where it led, or where it was refused
  int rule = -1;
  std::uint32_t grant = 0;       // which one permits it; 0: none
  std::uint32_t generation = 0;  // of the list
  Refusal refusal = Refusal::none;
  int status = 0;  // of Refusal::upstream: what that one answered
  int error = 0;   // errno of a connection that was permitted and failed
  Via via = Via::transparent;
  std::uint16_t port = 0;
  bool unresolved = false;  // to an address that no name was resolved to
  bool mapped = false;      // a mapping led it elsewhere
  bool upstream = false;    // through an upstream proxy, whose the address is
};

class Records {
 public:
  // Alarms have a budget of their own: whoever floods the door with refusals hides none.
  static constexpr std::int64_t kBurst = 500, kPerSecond = 50, kAlarmBurst = 100, kAlarmsPerSecond = 10;
  Records(LauncherLine& launcher, std::uint64_t workspace) : launcher_(launcher), workspace_(workspace) {}

  void accepted() { ++accepted_, changed_ = true; }
  void asked() { ++names_, changed_ = true; }
  // A connection that was made, or failed outside, at its end. on_record: else it is only counted.
  void ended(const Member& whose, const Facts& facts, std::int64_t now_us, bool on_record);
  void refused(const Member& whose, const Facts& facts, std::int64_t now_us);
  // At most once a second: what was only counted, and the figures. `open`: connections at this moment.
  void tell(std::size_t open, bool last = false);

 private:
  static constexpr std::size_t kRefusals = static_cast<std::size_t>(count_words(words(Refusal{})));
  [[nodiscard]] bool take(TokenBucket& budget, std::int64_t now_us);

  LauncherLine& launcher_;
  const std::uint64_t workspace_;
  TokenBucket budget_{kBurst, kPerSecond}, alarms_{kAlarmBurst, kAlarmsPerSecond};
  std::array<std::uint64_t, kRefusals> refused_{}, dropped_{};  // by Refusal; the first of dropped_: ended connections
  std::uint64_t accepted_ = 0, ended_ = 0, failed_ = 0, names_ = 0, up_ = 0, down_ = 0;
  std::size_t open_ = 0;  // as it was told last
  bool changed_ = false, dropped_some_ = false;
};

}  // namespace caisson::egress
