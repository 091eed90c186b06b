#include "launcher/common/attest/token.h"

#include <algorithm>

#include "launcher/common/attest/base64url.h"
#include "launcher/common/base/json.h"

namespace caisson::attest {

Status check_nonce(std::string_view nonce) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._~+/=-").find(c) != std::string_view::npos;
  };
  if (nonce.size() >= 8 && nonce.size() <= 88 && std::ranges::all_of(nonce, allowed)) return {};
  return fail(Code::invalid_argument, "'nonce' must be 8 to 88 characters of A-Z a-z 0-9 . _ ~ + / = -");
}

Result<std::string> make_token(const Key& key, nlohmann::json statement, std::string_view nonce, std::int64_t now_s) {
  const json::Value header{{"alg", "EdDSA"}, {"typ", "eat+jwt"}, {"kid", key.id()}};
  json::Value claims{{"iss", "caisson"},
                     {"iat", now_s},
                     {"eat_profile", kProfile},
                     {"swname", "caisson"},
                     {"swversion", json::Value::array({CAISSON_VERSION})},
                     {"caisson", std::move(statement)}};
  if (!nonce.empty()) claims["eat_nonce"] = nonce;
  std::string token = base64url(json::dump(header)) + "." + base64url(json::dump(claims));
  TRY_ASSIGN(const std::string signature, key.sign(token));
  return token + "." + base64url(signature);
}

}  // namespace caisson::attest
