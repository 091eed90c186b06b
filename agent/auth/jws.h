// JSON Web Signature (RFC 7515), compact form: verifies a token and returns the bytes that were signed, whatever they are. The
// claims are read elsewhere (claims.h), so that published vectors can test this part by itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/auth/jwk.h"
#include "launcher/common/base/result.h"

namespace caisson::auth {

inline constexpr std::size_t kMaxToken = 16 * 1024, kMaxTokenHeader = 4 * 1024;

struct Verified {
  std::string payload;
  std::string fingerprint;  // of the key that verified it
};

// RS, PS and ES with 256, 384 and 512, and EdDSA with Ed25519. The key fixes the algorithms: none, and HMAC with a public key for
// its secret, are not among them. Keys in the token (jku, jwk, x5u, x5c) are not looked at; kid chooses among the set's. A token
// with crit is refused, since no extension is known here.
[[nodiscard]] Result<Verified> verify_jws(std::string_view token, const KeySet& keys);

// The name of the key that a token says it was signed with, "" for none. nullopt: no key could verify this token.
[[nodiscard]] std::optional<std::string> kid_of(std::string_view token);

// Looks like one: three parts of base64url.
[[nodiscard]] bool is_jws(std::string_view text);

}  // namespace caisson::auth
