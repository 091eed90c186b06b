// JwtVerifier: the tokens of another issuer, signed by JWT_PUBLIC_KEY or a key of CAISSON_JWKS_FILE or CAISSON_JWKS_URL. Both
// sets may be replaced while the server runs. Verified tokens are remembered by their digest, at most until their end, and
// forgotten when the keys change.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/auth/claims.h"
#include "agent/auth/jwk.h"
#include "agent/auth/remote_keys.h"
#include "agent/http/watched_file.h"

namespace caisson::auth {

struct JwtSettings {
  std::optional<VerifyKey> key = {};  // JWT_PUBLIC_KEY
  std::string keys_file;              // CAISSON_JWKS_FILE
  RemoteSettings remote = {};         // CAISSON_JWKS_URL
  ClaimRules rules = {};
};

// The key of JWT_PUBLIC_KEY: a public key in PEM, in base64. An RSA key permits RS256 alone, as AIO has it.
[[nodiscard]] Result<VerifyKey> key_of_variable(std::string_view base64);

class JwtVerifier {
 public:
  static constexpr std::size_t kMaxRemembered = 1024;

  JwtVerifier(JwtSettings settings, std::vector<std::string_view> areas);
  void refresh(http::WatchedFile::Clock::time_point now);
  // The set of CAISSON_JWKS_URL, or the reason for its absence.
  void take(Result<std::string> set, http::WatchedFile::Clock::time_point now);
  // The token names a key that is not known, and is worth waiting for (arrival()).
  [[nodiscard]] bool may_come(std::string_view token, http::WatchedFile::Clock::time_point now);
  [[nodiscard]] asio::awaitable<void> arrival() { return remote_.arrival(); }
  // nullopt: the token is not good.
  [[nodiscard]] std::optional<Principal> verify(std::string_view token, std::int64_t now);
  // Whether a principal's root is a key that is still in use.
  [[nodiscard]] bool has_root(std::string_view root) const;
  [[nodiscard]] std::size_t remembered() const { return remembered_.size(); }

 private:
  void put_together();

  JwtSettings settings_;
  std::vector<std::string_view> areas_;
  http::WatchedFile file_;
  RemoteKeys remote_;
  KeySet of_file_, keys_;                        // all
  std::map<std::string, Principal> remembered_;  // by SHA-256 of the token
};

}  // namespace caisson::auth
