// The one decoder of request targets. A path is split at '/' first and each segment percent-decoded once after that, so
// an encoded slash can never become a separator and nothing is decoded twice. Below /v1/proxy/mappings/ the rest of the path is
// one segment: a URL.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http/request.h"
#include "launcher/common/base/result.h"

namespace caisson::http {

struct Target {
  std::string path;                   // as sent, up to '?'
  std::vector<std::string> segments;  // "/" has none; a trailing slash leaves one empty last segment
  Pairs query;                        // '+' is a space; "a" alone has an empty value
};

// Everything but letters, digits and "-._~" (RFC 3986, 2.3) as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);
// nullopt: a percent sign without two hexadecimal digits behind it.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space = false);

// Refused: empty, "." and ".." segments (encoded or not), %00 and other control characters, bad escapes, not UTF-8.
[[nodiscard]] Result<Target> decode_target(std::string_view target);

}  // namespace caisson::http
