#include "agent/auth/jws.h"

#include <algorithm>
#include <array>
#include <memory>

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "agent/auth/secret.h"

namespace caisson::auth {
namespace {

struct Algorithm {
  std::string_view name;
  KeyType type;
  const EVP_MD* (*digest)();  // nullptr: the signature's own
  bool pss;
  std::size_t half;  // bytes of each number of an ECDSA signature
};
constexpr std::array<Algorithm, 10> kAlgorithms{{{"RS256", KeyType::rsa, EVP_sha256, false, 0},
                                                 {"RS384", KeyType::rsa, EVP_sha384, false, 0},
                                                 {"RS512", KeyType::rsa, EVP_sha512, false, 0},
                                                 {"PS256", KeyType::rsa, EVP_sha256, true, 0},
                                                 {"PS384", KeyType::rsa, EVP_sha384, true, 0},
                                                 {"PS512", KeyType::rsa, EVP_sha512, true, 0},
                                                 {"ES256", KeyType::p256, EVP_sha256, false, 32},
                                                 {"ES384", KeyType::p384, EVP_sha384, false, 48},
                                                 {"ES512", KeyType::p521, EVP_sha512, false, 66},
                                                 {"EdDSA", KeyType::ed25519, nullptr, false, 0}}};

std::unexpected<Error> refused(std::string_view why) {
  ERR_clear_error();
  return fail(Code::permission_denied, std::string(why));
}

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// The two numbers of RFC 7518, 3.4, as OpenSSL has them (DER). Neither may be 0; OpenSSL checks the upper bound.
std::optional<std::string> der_of(std::string_view signature, std::size_t half) {
  if (signature.size() != 2 * half) return std::nullopt;
  BIGNUM* r = BN_bin2bn(bytes_of(signature), static_cast<int>(half), nullptr);
  BIGNUM* s = BN_bin2bn(bytes_of(signature.substr(half)), static_cast<int>(half), nullptr);
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> both(ECDSA_SIG_new(), ECDSA_SIG_free);
  if (!both || r == nullptr || s == nullptr || BN_is_zero(r) || BN_is_zero(s)) {
    BN_free(r);
    BN_free(s);
    return std::nullopt;
  }
  ECDSA_SIG_set0(both.get(), r, s);  // owns them now
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string out(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

bool verifies(const Algorithm& algorithm, EVP_PKEY* key, std::string_view signed_text, std::string_view signature) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_PKEY_CTX* options = nullptr;  // owned by the context
  const EVP_MD* digest = algorithm.digest == nullptr ? nullptr : algorithm.digest();
  if (!context || EVP_DigestVerifyInit(context.get(), &options, digest, nullptr, key) != 1) return false;
  // RFC 7518, 3.5: the salt is as long as the digest.
  if (algorithm.pss && (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1 ||
                        EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) != 1))
    return false;
  std::string der;
  if (algorithm.half != 0) {
    auto converted = der_of(signature, algorithm.half);
    if (!converted) return false;
    der = std::move(*converted);
    signature = der;
  }
  return EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(signed_text), signed_text.size()) == 1;
}

struct Parts {
  std::string_view header, payload, signature;
};
std::optional<Parts> split(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) return std::nullopt;
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1)};
}

// base64url without padding, and nothing else.
bool is_letters(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

bool is_jws(std::string_view text) {
  const auto parts = split(text);
  return parts && !parts->header.empty() && is_letters(parts->header) && is_letters(parts->payload) &&
         is_letters(parts->signature);
}

namespace {

// Several keys fit a token only if keys have no name or share one. A wrong token must not cost a verification by each.
constexpr int kMostTries = 4;

struct Named {
  const Algorithm* algorithm;
  std::optional<std::string> kid;
};
Result<Named> read_header(const Parts& parts) {
  if (parts.header.size() > kMaxTokenHeader) return refused("not a signed token");
  const auto header_text = base64url_decode(parts.header);
  if (!header_text) return refused("not a signed token");
  const auto header = json::parse(*header_text, {.max_bytes = kMaxTokenHeader, .max_depth = 8, .max_values = 256});
  if (!header || !header->is_object()) return refused("the token's header is not a JSON object");
  if (header->contains("crit") || header->contains("b64")) return refused("the token has an extension that is not known");
  const auto name = json::get_string(*header, "alg"), kid = json::get_string(*header, "kid");
  if (!name || !*name || !kid) return refused("the token's header is not that of a signature");
  const auto* algorithm = std::ranges::find(kAlgorithms, **name, &Algorithm::name);
  if (algorithm == kAlgorithms.end()) return refused("the token's algorithm is not permitted");
  return Named{algorithm, *kid};
}

}  // namespace

std::optional<std::string> kid_of(std::string_view token) {
  const auto parts = token.size() > kMaxToken ? std::nullopt : split(token);
  const auto named = parts ? read_header(*parts) : refused("not a signed token");
  if (!named) return std::nullopt;
  return named->kid.value_or("");
}

Result<Verified> verify_jws(std::string_view token, const KeySet& keys) {
  if (token.size() > kMaxToken) return refused("the token is too large");
  const auto parts = split(token);
  if (!parts) return refused("not a signed token");
  const auto signature = base64url_decode(parts->signature);
  auto payload = base64url_decode(parts->payload);
  if (!payload || !signature || signature->empty()) return refused("not a signed token");
  TRY_ASSIGN(const Named named, read_header(*parts));
  const std::string_view signed_text = token.substr(0, parts->header.size() + 1 + parts->payload.size());
  int tries = kMostTries;
  for (const VerifyKey& key : keys) {
    if (key.type != named.algorithm->type || (!key.alg.empty() && key.alg != named.algorithm->name)) continue;
    if (named.kid && !key.kid.empty() && *named.kid != key.kid) continue;
    if (tries-- == 0) break;
    if (verifies(*named.algorithm, key.key.get(), signed_text, *signature)) return Verified{std::move(*payload), key.fingerprint};
  }
  return refused("no key verifies the token");
}

}  // namespace caisson::auth
