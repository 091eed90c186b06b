#include "launcher/egress/door/records.h"

#include "launcher/common/base/result.h"
#include "launcher/common/telling/json_text.h"

namespace caisson::egress {
namespace {

JsonText common(std::string_view event, const Member& whose, const Facts& facts) {
  JsonText out;
  if (!whose.session.empty()) out.string("session", whose.session);
  if (whose.way) out.string("domain", whose.way->domain);
  out.string("event", event).string("via", word(words(Via{}), static_cast<std::size_t>(facts.via))).string("host", facts.host);
  if (facts.port != 0) out.number("port", facts.port);
  if (facts.address) out.string("address", facts.address->text());
  out.number("rule", facts.rule).number("generation", facts.generation);
  if (facts.grant != 0) out.number("grant", facts.grant);
  if (facts.unresolved) out.number("unresolved", 1);
  if (facts.mapped) out.number("mapped", 1);
  if (facts.upstream) out.number("upstream", 1);
  if (facts.status != 0) out.number("status", facts.status);
  if (!facts.why.empty()) out.string("why", facts.why);
  if (!facts.detail.empty()) out.string("detail", facts.detail);
  return out;
}

}  // namespace

bool Records::take(TokenBucket& budget, std::int64_t now_us) { return launcher_.room() && budget.take(now_us); }

void Records::ended(const Member& whose, const Facts& facts, std::int64_t now_us, bool on_record) {
  changed_ = true;
  ++(facts.error == 0 ? ended_ : failed_);
  up_ += facts.up, down_ += facts.down;
  if (!on_record) return;
  if (!take(budget_, now_us)) {
    ++dropped_[0], dropped_some_ = true;
    return;
  }
  JsonText out = common("connection", whose, facts);
  if (facts.error != 0) out.string("error", errno_name(facts.error));
  if (!facts.ended.empty()) out.string("ended", facts.ended);
  out.number("up", static_cast<std::int64_t>(facts.up)).number("down", static_cast<std::int64_t>(facts.down));
  out.number("ms", (now_us - facts.since_us) / 1000);
  (void)launcher_.tell(Said::record, workspace_, out.text());
}

void Records::refused(const Member& whose, const Facts& facts, std::int64_t now_us) {
  changed_ = true;
  const auto number = static_cast<std::size_t>(facts.refusal);
  ++refused_[number];
  if (!take(is_alarm(facts.refusal) ? alarms_ : budget_, now_us)) {
    ++dropped_[number], dropped_some_ = true;
    return;
  }
  JsonText out = common("refusal", whose, facts);
  out.string("refusal", word(words(Refusal{}), number));
  (void)launcher_.tell(Said::record, workspace_, out.text());
}

void Records::tell(std::size_t open, bool last) {
  if (!launcher_.room() && !last) return;
  if (std::exchange(dropped_some_, false)) {
    JsonText out;
    if (dropped_[0] != 0) out.number("connections", static_cast<std::int64_t>(dropped_[0]));
    for (std::size_t i = 1; i < kRefusals; ++i)
      if (dropped_[i] != 0) out.number(word(words(Refusal{}), i), static_cast<std::int64_t>(dropped_[i]));
    dropped_ = {};
    (void)launcher_.tell(Said::dropped, workspace_, out.text());
  }
  if (!std::exchange(changed_, false) && open == open_) return;
  open_ = open;
  JsonText refusals, out;
  for (std::size_t i = 1; i < kRefusals; ++i)
    if (refused_[i] != 0) refusals.number(word(words(Refusal{}), i), static_cast<std::int64_t>(refused_[i]));
  const auto number = [&out](std::string_view name, std::uint64_t value) { out.number(name, static_cast<std::int64_t>(value)); };
  number("accepted", accepted_), number("ended", ended_), number("failed", failed_), number("open", open),
      number("names", names_);
  number("up", up_), number("down", down_);
  out.raw("refused", refusals.text());
  (void)launcher_.tell(Said::figures, workspace_, out.text());
}

}  // namespace caisson::egress
