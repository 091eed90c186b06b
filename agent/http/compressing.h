// Which answers are compressed. Private to agent/http.
//
// The length of a compressed text tells how much of it repeats. Whoever can make a victim's browser send requests whose text
// stands in the answer beside a secret learns the secret byte by byte from lengths (BREACH). Cross-site requests carry no key in
// a header, but they can carry a cookie. Therefore no answer to a request with a cookie is compressed, and none that sets one.
// Event streams and parts of files are sent as they come, never compressed.
#pragma once

#include "agent/http/request.h"
#include "agent/http/response.h"

namespace caisson::http {

inline constexpr std::size_t kLeastToCompress = 1024, kMostToCompress = 8 * 1024 * 1024;

// Whether the client takes gzip (Accept-Encoding with q-values, RFC 9110, 12.5.3) and prefers it to plain text, and has no
// cookie.
[[nodiscard]] bool accepts_gzip(const Pairs& headers);
// Whether the answer is text that may be compressed for such a client.
[[nodiscard]] bool is_compressible(const Response& response);

}  // namespace caisson::http
