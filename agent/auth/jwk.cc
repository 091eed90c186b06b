#include "agent/auth/jwk.h"

#include <algorithm>
#include <array>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "agent/auth/secret.h"
#include "agent/http/openssl_ptr.h"

namespace caisson::auth {
namespace {

using Pkey = std::shared_ptr<EVP_PKEY>;

using Bignum = http::OpensslPtr<BIGNUM, BN_free>;
using ParamBuild = http::OpensslPtr<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using Params = http::OpensslPtr<OSSL_PARAM, OSSL_PARAM_free>;
using PkeyContext = http::OpensslPtr<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using Bio = http::OpensslPtr<BIO, BIO_free>;

struct Curve {
  std::string_view name;  // of JWK
  const char* group;      // of OpenSSL
  KeyType type;
  std::size_t bytes;
};
constexpr std::array<Curve, 3> kCurves{{{"P-256", "prime256v1", KeyType::p256, 32},
                                        {"P-384", "secp384r1", KeyType::p384, 48},
                                        {"P-521", "secp521r1", KeyType::p521, 66}}};

std::unexpected<Error> bad_jwk(std::string what) {
  ERR_clear_error();
  return fail(Code::invalid_argument, std::move(what));
}

const unsigned char* raw(const std::string& bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

Result<std::string> octets_of(const json::Value& jwk, std::string_view name) {
  TRY_ASSIGN(const auto text, json::get_string(jwk, name));
  auto bytes = base64url_decode(text.value_or(""));
  if (!bytes || bytes->empty()) return bad_jwk(quote(name) + " must be base64url");
  return std::move(*bytes);
}

Result<Pkey> from_params(const char* type, OSSL_PARAM_BLD* build) {
  const Params params(OSSL_PARAM_BLD_to_param(build));
  const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* made = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return bad_jwk("not a public key");
  Pkey key(made, EVP_PKEY_free);
  // A point that is not on its curve, for example, would be taken above.
  const PkeyContext check(EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  if (!check || EVP_PKEY_public_check(check.get()) != 1) return bad_jwk("not a valid public key");
  return key;
}

Result<Pkey> rsa_key(const json::Value& jwk) {
  TRY_ASSIGN(const std::string n, octets_of(jwk, "n"));
  TRY_ASSIGN(const std::string e, octets_of(jwk, "e"));
  if (n.size() > kMostRsaBits / 8 || e.size() > 8) return bad_jwk("RSA key is too large");
  const Bignum modulus(BN_bin2bn(raw(n), static_cast<int>(n.size()), nullptr));
  const Bignum exponent(BN_bin2bn(raw(e), static_cast<int>(e.size()), nullptr));
  const ParamBuild build(OSSL_PARAM_BLD_new());
  if (!modulus || !exponent || !build || OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1)
    return bad_jwk("not an RSA key");
  return from_params("RSA", build.get());
}

Result<Pkey> ec_key(const json::Value& jwk, const Curve& curve) {
  TRY_ASSIGN(const std::string x, octets_of(jwk, "x"));
  TRY_ASSIGN(const std::string y, octets_of(jwk, "y"));
  if (x.size() != curve.bytes || y.size() != curve.bytes) return bad_jwk("a coordinate has the wrong length");
  const std::string point = '\x04' + x + y;
  const ParamBuild build(OSSL_PARAM_BLD_new());
  if (!build || OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.group, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1)
    return bad_jwk("not an EC key");
  return from_params("EC", build.get());
}

Result<Pkey> ed25519_key(const json::Value& jwk) {
  TRY_ASSIGN(const std::string x, octets_of(jwk, "x"));
  if (x.size() != 32) return bad_jwk("'x' has the wrong length");
  Pkey key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(x), x.size()), EVP_PKEY_free);
  if (!key) return bad_jwk("not an Ed25519 key");
  return key;
}

Result<KeyType> type_of(EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return KeyType::ed25519;
  const int bits = EVP_PKEY_get_bits(key);
  if (EVP_PKEY_is_a(key, "RSA") == 1) {
    if (bits < kLeastRsaBits || bits > kMostRsaBits) return bad_jwk("RSA keys must have 2048 to 8192 bits");
    return KeyType::rsa;
  }
  std::array<char, 64> group{};
  if (EVP_PKEY_is_a(key, "EC") == 1 && EVP_PKEY_get_group_name(key, group.data(), group.size(), nullptr) == 1)
    for (const Curve& curve : kCurves)
      if (std::string_view(group.data()) == curve.group) return curve.type;
  return bad_jwk("must be an RSA, P-256, P-384, P-521 or Ed25519 key");
}

Result<VerifyKey> described(Pkey key, std::string kid, std::string alg) {
  TRY_ASSIGN(const KeyType type, type_of(key.get()));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key.get(), &der);
  if (size <= 0) return bad_jwk("not a public key");
  std::string fingerprint = sha256({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return VerifyKey{std::move(key), type, std::move(kid), std::move(alg), std::move(fingerprint)};
}

// RFC 7517, 4.2 and 4.3: a key for something else must not verify.
Result<bool> is_to_verify(const json::Value& jwk) {
  TRY_ASSIGN(const auto use, json::get_string(jwk, "use"));
  if (use && *use != "sig") return false;
  const auto operations = jwk.find("key_ops");
  if (operations == jwk.end()) return true;
  if (!operations->is_array()) return bad_jwk("'key_ops' must be a list");
  return std::ranges::any_of(*operations, [](const json::Value& op) { return op == "verify"; });
}

}  // namespace

Result<std::optional<VerifyKey>> parse_jwk(const json::Value& jwk) {
  if (!jwk.is_object()) return bad_jwk("a key must be an object");
  TRY_ASSIGN(const auto kind, json::get_string(jwk, "kty"));
  TRY_ASSIGN(const auto curve_name, json::get_string(jwk, "crv"));
  TRY_ASSIGN(const auto kid, json::get_string(jwk, "kid"));
  TRY_ASSIGN(const auto alg, json::get_string(jwk, "alg"));
  TRY_ASSIGN(const bool to_verify, is_to_verify(jwk));
  if (!kind) return bad_jwk("a key has no 'kty'");
  const auto* curve = std::ranges::find(kCurves, curve_name.value_or(""), &Curve::name);
  Result<Pkey> key = Pkey();
  if (!to_verify) return std::optional<VerifyKey>();
  if (*kind == "RSA") key = rsa_key(jwk);
  else if (*kind == "EC" && curve != kCurves.end()) key = ec_key(jwk, *curve);
  else if (*kind == "OKP" && curve_name == "Ed25519") key = ed25519_key(jwk);
  else return std::optional<VerifyKey>();
  if (!key) return std::unexpected(std::move(key).error());
  TRY_ASSIGN(VerifyKey out, described(std::move(*key), kid.value_or(""), alg.value_or("")));
  return std::optional(std::move(out));
}

Result<KeySet> parse_jwks(std::string_view text) {
  TRY_ASSIGN(const json::Value document, json::parse(text, {.max_bytes = kMaxSetBytes, .max_depth = 6, .max_values = 8192}));
  const auto keys = document.is_object() ? document.find("keys") : document.end();
  if (!document.is_object() || keys == document.end() || !keys->is_array() || keys->size() > kMaxSetKeys)
    return bad_jwk("must be an object with 'keys', a list of at most " + std::to_string(kMaxSetKeys));
  KeySet out;
  for (const json::Value& jwk : *keys) {
    auto key = parse_jwk(jwk);
    if (!key) return std::unexpected(std::move(key).error());
    if (*key) out.push_back(std::move(**key));
  }
  if (out.empty()) return bad_jwk("no key in it can verify a token");
  return out;
}

Result<VerifyKey> parse_pem(std::string_view pem, std::string alg) {
  if (pem.size() > 64 * 1024) return bad_jwk("too large");
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Pkey key(bio ? PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr) : nullptr, EVP_PKEY_free);
  if (!key) return bad_jwk("must be a public key in PEM (-----BEGIN PUBLIC KEY-----)");
  return described(std::move(key), "", std::move(alg));
}

}  // namespace caisson::auth
