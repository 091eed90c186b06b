// Fields of a message whose sender has been checked, or of which nothing depends: what is absent or of another kind has the value
// that is said here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/json.h"

namespace caisson::bridge {

[[nodiscard]] inline std::string text_of(const json::Value& object, std::string_view key) {  // ""
  return json::get_string(object, key).value_or(std::nullopt).value_or("");
}

[[nodiscard]] inline std::optional<std::int64_t> number_of(const json::Value& object, std::string_view key) {
  return json::get_int(object, key).value_or(std::nullopt);
}

[[nodiscard]] inline bool flag_of(const json::Value& object, std::string_view key) {  // false
  return json::get_bool(object, key).value_or(std::nullopt).value_or(false);
}

}  // namespace caisson::bridge
