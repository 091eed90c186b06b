// The one JSON parser of the project (policies, IPC, HTTP bodies). Stricter than nlohmann's own: no duplicate keys,
// bounded size, depth and element count, valid UTF-8 only, integers exact. Both sides of every trust boundary use this
// code, so that no two parsers can disagree on one text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "launcher/common/base/result.h"

namespace caisson::json {

using Value = nlohmann::json;

struct Bounds {
  std::size_t max_bytes = 64 * 1024;
  std::size_t max_depth = 32;
  std::size_t max_values = 16 * 1024;  // containers, keys and scalars together
};

// Told of each value before those in it: in how many others it is, its key or number in the last of these, and its line (from 1).
using Placed = std::function<void(std::size_t depth, std::string_view token, int line)>;

// Errors: invalid_argument, what = "line 3: ..." (duplicate key, depth, size, syntax, number out of range).
[[nodiscard]] Result<Value> parse(std::string_view text, const Bounds& bounds = {}, const Placed& placed = {});

// Never throws: bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string dump(const Value& value, int indent = -1);

// Typed reads of an object's member. absent or null: nullopt. Wrong type: invalid_argument naming the key.
[[nodiscard]] Result<std::optional<std::string>> get_string(const Value& object, std::string_view key);
[[nodiscard]] Result<std::optional<std::int64_t>> get_int(const Value& object, std::string_view key);
[[nodiscard]] Result<std::optional<bool>> get_bool(const Value& object, std::string_view key);
}  // namespace caisson::json
