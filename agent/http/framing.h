// Strict check of a request's head, in front of Beast. Debian's Beast accepts Transfer-Encoding: xchunked, chunked on HTTP/1.0,
// equal duplicate Content-Lengths, a missing or doubled Host and absolute-form targets; a proxy in front of us may read those
// differently, and a request smuggled between the two would bypass its checks. An ambiguous head is answered 400 and the
// connection is closed, before router or handlers see it. Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/http/limits.h"
#include "agent/http/request.h"
#include "launcher/common/base/result.h"

namespace caisson::http {

enum class BodyKind { none, length, chunked };

struct Head {
  std::string method;
  std::string target;
  int minor_version = 1;
  Pairs headers;  // names in lower case, values trimmed
  BodyKind body = BodyKind::none;
  std::uint64_t content_length = 0;
  bool keep_alive = true;
  bool expect_continue = false;
};

// Where the head ends (behind its empty line) in `bytes`; 0 when more bytes are needed. `scanned` remembers how far an
// earlier call came. Errors as soon as the bytes can no longer become a valid head: bare LF, not a method, too long.
[[nodiscard]] Result<std::size_t> find_head_end(std::string_view bytes, std::size_t& scanned, const Limits& limits);

// `bytes`: the whole head with its empty line. The error's text goes to the client.
[[nodiscard]] Result<Head> check_head(std::string_view bytes, const Limits& limits);

// Whether the text may stand in a Host header.
[[nodiscard]] bool is_host(std::string_view host);

}  // namespace caisson::http
