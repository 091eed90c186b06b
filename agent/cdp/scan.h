// The top level of one CDP message: where its members are, without building a tree. The whole text is checked against RFC 8259
// first, so that Chromium's parser cannot see another structure than this one: both agree on every text that passes here, and a
// text on which they could differ (comments, a second `id`, an escaped key) does not pass. Linear time, no allocation but one bit
// for each level of nesting. In caisson-cdp, on what clients and a hostile renderer write.
#pragma once

#include <cstddef>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::cdp {

// Chromium's parser takes 300 levels (crdtp/json.cc, kStackLimit); deeper is an error there.
inline constexpr std::size_t kMaxDepth = 300;

struct Span {
  std::size_t begin = 0, end = 0;  // end == 0: absent
  [[nodiscard]] bool there() const { return end != 0; }
  [[nodiscard]] std::size_t size() const { return end - begin; }
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

struct Member {
  Span value;  // with its quotes, if it is a string
  Span whole;  // key, colon, value and one comma beside them: what is cut out to remove it
};

struct Message {
  Member id, session_id, method, params, result, error;
  std::size_t open = 0;  // of the brace that opens the object
};

// Errors: invalid_argument. No object, no JSON, deeper than kMaxDepth, bytes after the object; one of `id`, `sessionId`,
// `method`, `params`, `result`, `error` twice at the top level; any key of the top level with an escape, or such a `method` or
// `sessionId`.
[[nodiscard]] Result<Message> scan(std::string_view text);

// The value of the member `key` of the object `text`; empty if it has none or several. For what is inside `params` and
// `result` of messages that scan() passed. inner_string: what is between the quotes of a string; one with an escape counts as
// none.
[[nodiscard]] std::string_view inner_value(std::string_view text, std::string_view key);
[[nodiscard]] std::string_view inner_string(std::string_view text, std::string_view key);

// The text between the quotes of a string value; empty for other values.
[[nodiscard]] std::string_view unquoted(std::string_view value);

// A JSON number without fraction and exponent, of at most 32 characters: 0, -1, 9007199254740992.
[[nodiscard]] bool is_integer(std::string_view value);

}  // namespace caisson::cdp
