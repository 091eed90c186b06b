// Strict reading of what an app answers. The app is a program of a session: it may lie about lengths, split answers or never end
// a line. Anything that two parsers could read differently is an error, and the client gets 502. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/http/request.h"
#include "launcher/common/base/result.h"

namespace caisson::proxy {

inline constexpr std::size_t kAnswerHeadBytes = 64 * 1024;
inline constexpr std::size_t kAnswerHeaders = 200;

enum class Framing { none, length, chunked, until_end };

struct AnswerHead {
  int status = 0;
  int minor_version = 1;
  std::string reason;
  http::Pairs headers;  // names in lower case, values trimmed
  Framing framing = Framing::none;
  std::uint64_t length = 0;  // told, even if no body follows
  bool has_length = false;
};

// Where the head ends, behind its empty line; 0: more bytes are needed. `scanned` remembers how far an earlier call came.
[[nodiscard]] Result<std::size_t> find_answer_end(std::string_view bytes, std::size_t& scanned);
// to_head: the request was HEAD.
[[nodiscard]] Result<AnswerHead> read_answer_head(std::string_view bytes, bool to_head);
// Whether the connection can carry a next answer once this one's body is done. An answer without a body, such as to HEAD, does
// not tell that its server really sends none, so it does not count.
[[nodiscard]] bool leaves_connection(const AnswerHead& head);
// Whether this answer is the right 101 for that Sec-WebSocket-Key.
[[nodiscard]] bool accepts_websocket(const AnswerHead& head, std::string_view key);

}  // namespace caisson::proxy
