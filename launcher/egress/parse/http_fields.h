// What heads of requests and of answers have in common: lines, fields, framing. Strict (RFC 9112): whatever two parsers could
// read differently is refused, since the one behind us would see another request than the one that was checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

struct Field {
  std::string_view name, value;  // as written, without the white space around the value
  // Of this connection only, not to be sent on: those that RFC 9110 7.6.1 lists, proxies' credentials, and what Connection names.
  // The one who sends the head on writes Connection and Transfer-Encoding anew.
  bool hop_by_hop = false;
};
using Fields = std::vector<Field>;

enum class BodyKind { none, length, chunked, until_close };
struct Framing {
  BodyKind kind = BodyKind::none;
  std::uint64_t length = 0;
};

// Where the search for a head's end has come to, so that a head that comes byte by byte is read once.
struct HeadScan {
  std::size_t at = 0;
};

[[nodiscard]] bool same_word(std::string_view a, std::string_view b);  // without regard to case
[[nodiscard]] bool is_token(std::string_view text);

// done: the size of the head, with the empty line at its end.
Outcome find_head_end(std::string_view bytes, HeadScan& scan);
// The first line of a whole head, and its fields. Views into `head`. Marks what is hop-by-hop.
Outcome read_lines(std::string_view head, std::string_view& first, Fields& fields);
// The value of that name. Refused if there are two.
Outcome only_value(const Fields& fields, std::string_view name, std::optional<std::string_view>& value);
// Whether a field of that name, a list with commas, has the word.
[[nodiscard]] bool list_has(const Fields& fields, std::string_view name, std::string_view word);
// Content-Length or Transfer-Encoding: chunked, never both; `none` where neither is. minor: of the HTTP version.
Outcome read_framing(const Fields& fields, int minor, Framing& framing);
// One field, without its line end.
Outcome read_field(std::string_view line, Field& field);

}  // namespace caisson::egress
