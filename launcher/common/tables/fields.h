// Members of an object that was checked, or on which nothing depends: what is absent or of another kind has the value that is
// said here. Not for PID 1, which names what is wrong with a request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::json {

[[nodiscard]] inline std::string text_of(const Value& object, std::string_view key) {  // ""
  return get_string(object, key).value_or(std::nullopt).value_or("");
}

[[nodiscard]] inline std::optional<std::int64_t> number_of(const Value& object, std::string_view key) {
  return get_int(object, key).value_or(std::nullopt);
}

[[nodiscard]] inline bool flag_of(const Value& object, std::string_view key) {  // false
  return get_bool(object, key).value_or(std::nullopt).value_or(false);
}

}  // namespace caisson::json
