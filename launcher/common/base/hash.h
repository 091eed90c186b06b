// SHA-256 (FIPS 180-4) as lower-case hex, for the audit chain and policy digests. Our own sixty lines rather than
// libcrypto: loading and initialising that costs a short-lived program 2.3 ms, several times what a sealed session
// costs. Nothing secret is hashed, so timing does not matter. Checked against the published vectors in tests/unit/audit.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

[[nodiscard]] std::string sha256_hex(std::string_view data);

}  // namespace caisson
