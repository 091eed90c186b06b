// Base64 (RFC 4648, section 4), as JSON carries bytes.
#pragma once

#include <string>
#include <string_view>

namespace caisson::http {

[[nodiscard]] std::string base64_encode(std::string_view bytes);

}  // namespace caisson::http
