// The member `end` of answers about what was started: why it is over. The contract's members beside it stay as they are.
#pragma once

#include "agent/bridge/end.h"
#include "agent/routes/schema.h"

namespace caisson::routes {

template <>
struct Schema<bridge::End> {
  using T = bridge::End;
  static constexpr std::string_view name = "End";
  static constexpr auto fields =
      std::tuple{field("reason", &T::reason, "Why it is over").one_of(bridge::kEndReasons),
                 field("limit", &T::limit, "The limit that ended it; the name has the unit"),
                 field("allowed", &T::allowed, "How much the limit allows"),
                 field("figure", &T::figure, "How much it was, where that was counted; of an exit, its code"),
                 field("signal", &T::signal, "The signal that ended it"),
                 field("cause", &T::cause, "What says more than the reason, in the words of the audit log")};
};

template <class T>
constexpr auto end_field(std::optional<bridge::End> T::* member) {
  return field("end", member, "Why it is over; null while it runs");
}

}  // namespace caisson::routes
