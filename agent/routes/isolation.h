// The member `isolation` of requests that create a session. It is a member and not a header, because a header would come with
// every request and could contradict the session that the request names.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "agent/routes/schema.h"

namespace caisson::routes {

inline constexpr std::array<std::string_view, 2> kIsolation = {"shared", "private"};

template <class T>
constexpr auto isolation_field(std::optional<std::string> T::* member) {
  return field("isolation", member,
               "private: a home, /tmp and loopback network of this session alone, empty and gone with it, instead of the "
               "workspace's. Absent: shared, or as the session of that id was made")
      .one_of(kIsolation);
}

[[nodiscard]] inline std::optional<bool> isolated(const std::optional<std::string>& isolation) {
  return isolation ? std::optional(*isolation == "private") : std::nullopt;
}

}  // namespace caisson::routes
