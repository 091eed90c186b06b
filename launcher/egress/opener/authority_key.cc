#include "launcher/egress/opener/authority_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/param_build.h>

#include <utility>

namespace caisson::egress {
namespace {

using Number = OpensslPtr<BIGNUM, BN_clear_free>;

// 1 to order - 1. Of twice as many bits as the order has, every value is as likely as the others but for 2^-256 (FIPS 186-5
// A.2.1).
Number scalar_of(std::string_view seed, const EC_GROUP* group, BN_CTX* context) {
  const Number wide(BN_bin2bn(reinterpret_cast<const unsigned char*>(seed.data()), static_cast<int>(seed.size()), nullptr));
  const Number most(BN_dup(EC_GROUP_get0_order(group)));
  Number out(BN_secure_new());
  const bool done = wide && most && out && BN_sub_word(most.get(), 1) == 1 &&
                    BN_mod(out.get(), wide.get(), most.get(), context) == 1 && BN_add_word(out.get(), 1) == 1;
  return done ? std::move(out) : nullptr;
}

}  // namespace

AuthorityKey new_key() { return AuthorityKey(EVP_EC_gen("P-256")); }

AuthorityKey key_of(std::string_view seed) {
  const OpensslPtr<EC_GROUP, EC_GROUP_free> group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const OpensslPtr<BN_CTX, BN_CTX_free> context(BN_CTX_new());
  const Number scalar = group && context ? scalar_of(seed, group.get(), context.get()) : nullptr;
  const OpensslPtr<EC_POINT, EC_POINT_free> point(scalar ? EC_POINT_new(group.get()) : nullptr);
  unsigned char bytes[65];
  if (!point || EC_POINT_mul(group.get(), point.get(), scalar.get(), nullptr, nullptr, context.get()) != 1) return nullptr;
  const std::size_t size =
      EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, bytes, sizeof bytes, context.get());
  const OpensslPtr<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> build(OSSL_PARAM_BLD_new());
  const bool said = build && size == sizeof bytes &&
                    OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
                    OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, bytes, size) == 1 &&
                    OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar.get()) == 1;
  const OpensslPtr<OSSL_PARAM, OSSL_PARAM_free> params(said ? OSSL_PARAM_BLD_to_param(build.get()) : nullptr);
  const OpensslPtr<EVP_PKEY_CTX, EVP_PKEY_CTX_free> maker(params ? EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr) : nullptr);
  EVP_PKEY* key = nullptr;
  if (!maker || EVP_PKEY_fromdata_init(maker.get()) != 1 ||
      EVP_PKEY_fromdata(maker.get(), &key, EVP_PKEY_KEYPAIR, params.get()) != 1)
    return nullptr;
  return AuthorityKey(key);
}

}  // namespace caisson::egress
