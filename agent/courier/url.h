// An address of the operator's to which requests are made: http://host[:port]/path?query, or https.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::courier {

struct Url {
  bool tls = true;
  std::string host;  // a name or an address, an IPv6 one without its brackets
  std::uint16_t port = 0;
  std::string authority;  // as the header Host has it
  std::string target;     // path and query
};

// Code::invalid_argument: not such an address. A user name, a password and a fragment are refused. The message does not repeat
// the address, which may have a secret in its query.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

}  // namespace caisson::courier
