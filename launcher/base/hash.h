// SHA-256 (FIPS 180-4) by OpenSSL's libcrypto, as lower-case hex.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

[[nodiscard]] std::string sha256_hex(std::string_view data);

}  // namespace caisson
