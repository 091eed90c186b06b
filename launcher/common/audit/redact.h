// A client's data as an audit record may have it: credentials removed (best effort, by table: names, well-known
// token prefixes, user info of URLs), everything as printable ASCII, bounded in size. Over-redaction is accepted, a
// leaked secret is not: the log is read by more people than the command line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::audit {

inline constexpr std::string_view kRedacted = "[redacted]";

// Any text, a shell script among others: NAME=value, --flag value, "Header: value", URLs, token prefixes.
[[nodiscard]] std::string redacted_text(std::string_view text);

// `value` as one line of ASCII JSON of at most max_bytes: control characters, everything beyond ASCII (bidi overrides,
// line separators) and broken UTF-8 escaped. When it is too long, strings, then arrays and objects are cut, visibly:
// {"cut": <size before>, "start": "..."}.
[[nodiscard]] std::string fit(const json::Value& value, std::size_t max_bytes);

}  // namespace caisson::audit
