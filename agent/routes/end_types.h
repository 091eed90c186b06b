// The member `end` of answers about programs and sessions: why they are over. The contract's own members are unchanged.
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
                 field("limit", &T::limit, "The limit that ended it; its name ends with the unit"),
                 field("allowed", &T::allowed, "The value of the limit"),
                 field("figure", &T::figure, "The figure that was reached, if counted; for an exit, its code"),
                 field("signal", &T::signal, "The signal that ended it"),
                 field("cause", &T::cause, "A more exact cause, in the words of the audit log")};
};

template <class T>
constexpr auto end_field(std::optional<bridge::End> T::* member) {
  return field("end", member, "Why it is over; null while it runs");
}

}  // namespace caisson::routes
