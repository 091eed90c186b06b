#include "launcher/cli/attest/open_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "launcher/common/attest/base64url.h"
#include "launcher/common/attest/key.h"
#include "launcher/common/attest/token.h"
#include "launcher/common/tables/fields.h"

namespace caisson::attest {
namespace {

constexpr std::size_t kMaxToken = 1 << 20;
constexpr std::int64_t kClockSkew = 60;

Result<json::Value> decode(std::string_view part, std::string_view name) {
  const auto text = from_base64url(part);
  if (!text) return fail(Code::protocol, "the token's " + std::string(name) + " is not base64url");
  auto value = json::parse(*text, {.max_bytes = kMaxToken});
  if (!value || !value->is_object()) return fail(Code::protocol, "the token's " + std::string(name) + " is not a JSON object");
  return std::move(*value);
}

struct Parts {
  std::string_view header, claims, signature, signed_text;
};
Result<Parts> split(std::string_view token) {
  const auto first = token.find('.'), last = token.rfind('.');
  if (token.size() > kMaxToken || first == std::string_view::npos || first == last ||
      token.substr(first + 1, last - first - 1).find('.') != std::string_view::npos)
    return fail(Code::protocol, "not a token: three parts with dots between them");
  return Parts{token.substr(0, first), token.substr(first + 1, last - first - 1), token.substr(last + 1), token.substr(0, last)};
}

}  // namespace

std::optional<std::string> from_base64url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held & 255));
  }
  if ((bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return out;
}

Status verify(std::string_view public_key, std::string_view data, std::string_view signature) {
  (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);  // as common/attest/key.cc: no openssl.cnf
  constexpr std::size_t kPublicBytes = 32;
  const auto bytes = [](std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); };
  if (public_key.size() != kPublicBytes) return fail(Code::invalid_argument, "an Ed25519 public key has 32 bytes");
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes(public_key), public_key.size()), EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!key || !context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1)
    return fail(Code::internal, "cannot verify");
  if (EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(data), data.size()) != 1)
    return fail(Code::permission_denied, "the signature is not of these bytes by this key");
  return {};
}

Result<nlohmann::json> open_token(std::string_view token, const nlohmann::json& jwk, const Expectation& expected) {
  TRY_ASSIGN(const Parts parts, split(token));
  TRY_ASSIGN(const json::Value header, decode(parts.header, "header"));
  // The algorithm is ours to name, never the token's: "none" and key confusion end here.
  if (json::text_of(header, "alg") != "EdDSA" || header.contains("crit"))
    return fail(Code::permission_denied, "the token is not signed with EdDSA");
  if (json::text_of(jwk, "kty") != "OKP" || json::text_of(jwk, "crv") != "Ed25519")
    return fail(Code::invalid_argument, "the key is not an Ed25519 JWK");
  const auto half = from_base64url(json::text_of(jwk, "x")), signature = from_base64url(parts.signature);
  if (!half || !signature) return fail(Code::protocol, "key or signature is not base64url");
  TRY(verify(*half, parts.signed_text, *signature));
  TRY_ASSIGN(json::Value claims, decode(parts.claims, "claims"));
  if (json::text_of(claims, "eat_profile") != kProfile)
    return fail(Code::permission_denied, "the token's profile is " + quote(json::text_of(claims, "eat_profile")));
  if (expected.nonce && json::text_of(claims, "eat_nonce") != *expected.nonce)
    return fail(Code::permission_denied, "the token's nonce is " + quote(json::text_of(claims, "eat_nonce")) + ", not " +
                                             quote(*expected.nonce) + ": it was made for another question, or is replayed");
  TRY_ASSIGN(const auto issued, json::get_int(claims, "iat"));
  if (!issued) return fail(Code::protocol, "the token has no 'iat'");
  if (*issued > expected.now_s + kClockSkew) return fail(Code::permission_denied, "the token was issued in the future");
  if (expected.max_age_s && *issued < expected.now_s - *expected.max_age_s)
    return fail(Code::permission_denied, "the token is " + std::to_string(expected.now_s - *issued) + " s old, at most " +
                                             std::to_string(*expected.max_age_s) + " are allowed");
  return claims;
}

}  // namespace caisson::attest
