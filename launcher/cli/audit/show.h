// Records for people: one line each, aligned, safe for a terminal whatever the record holds (all values that a session
// chose are printed as escaped ASCII). Pure: text in, text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"

namespace caisson::audit {

struct Style {
  bool colour = false;
  std::size_t max_value = 160;  // longer values end in "..."; 0: whole
};

struct Filter {
  std::vector<std::string> events;  // empty: all
  std::string since;                // RFC 3339 in UTC, compared as text; empty: all
  [[nodiscard]] bool match(const json::Value& record) const;
};

// "2026-01-02 03:04:05.000006      12  exec_request     argv=[bash -c "ls /"]  cwd=/home/gem"
[[nodiscard]] std::string show(const json::Value& record, const Style& style);
// A line that is no record.
[[nodiscard]] std::string show_broken(std::string_view line, const Style& style);

// One value as escaped ASCII: bare when it is a plain word, as JSON otherwise.
[[nodiscard]] std::string show_value(const json::Value& value);

// "2026-01-02T03:04:05Z", a beginning of one, or an age: 90s, 15m, 2h, 7d. nullopt: neither.
[[nodiscard]] std::optional<std::string> since_from(std::string_view text, std::int64_t now_ns);

}  // namespace caisson::audit
