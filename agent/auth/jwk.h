// Public keys that verify tokens: JWK (RFC 7517), JWK sets, and PEM. A key permits algorithms; a token only says which of them it
// used. What cannot verify, such as symmetric keys and those for encryption, is left out of a set.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

struct evp_pkey_st;

namespace caisson::auth {

enum class KeyType { rsa, p256, p384, p521, ed25519 };

struct VerifyKey {
  std::shared_ptr<evp_pkey_st> key;
  KeyType type = KeyType::rsa;
  std::string kid;          // may be empty
  std::string alg;          // the only algorithm; empty: every one of its type
  std::string fingerprint;  // SHA-256 of the public key: what a token stands on
};
using KeySet = std::vector<VerifyKey>;

inline constexpr std::size_t kMaxSetKeys = 100, kMaxSetBytes = 256 * 1024;
inline constexpr int kLeastRsaBits = 2048, kMostRsaBits = 8192;

// Code::invalid_argument: not a set, a key that is not what it says, or none that can verify.
[[nodiscard]] Result<KeySet> parse_jwks(std::string_view text);
// One key. nullopt: of a kind that does not verify here.
[[nodiscard]] Result<std::optional<VerifyKey>> parse_jwk(const json::Value& jwk);
// alg: the only one permitted; empty: every one of the key's type.
[[nodiscard]] Result<VerifyKey> parse_pem(std::string_view pem, std::string alg);

}  // namespace caisson::auth
