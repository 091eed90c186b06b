// Published vectors of RFC 7515 (appendix A) and RFC 8037 (A.4), tokens signed here, and hostile ones.
#include <gtest/gtest.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "agent/auth/jws.h"
#include "agent/auth/jwt.h"
#include "agent/auth/secret.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kRsa =
    R"({"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPM)"
    R"(EzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5)"
    R"(rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-D)"
    R"(WNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"})";
constexpr std::string_view kP256 =
    R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue6)"
    R"(59LNpXW6pCyStikYjKIWI5a0"})";
constexpr std::string_view kP521 =
    R"({"kty":"EC","crv":"P-521","x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jS)"
    R"(fS9tsz4qUxcWceqwQGk","y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh)"
    R"(9ubmf63e3kyMj2"})";
constexpr std::string_view kEd = R"({"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})";

constexpr std::string_view kPayload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
constexpr std::string_view kRsaSignature =
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKB"
    "YNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"
    "eOkHWEsqtFZESc6BfI7"
    "noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
constexpr std::string_view kEcSignature =
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
constexpr std::string_view kP521Signature =
    "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_"
    "7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8Kp"
    "EHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn";
constexpr std::string_view kEdSignature =
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

std::string b64(std::string_view text) { return base64url_encode(text); }
std::string dotted(std::string_view a, std::string_view b, std::string_view c) {
  return std::string(a) + "." + std::string(b) + "." + std::string(c);
}
KeySet set_of(std::string_view jwk) { return *parse_jwks("{\"keys\":[" + std::string(jwk) + "]}"); }
std::string with_member(std::string_view jwk, std::string_view member) {
  return std::string(jwk.substr(0, jwk.size() - 1)) + "," + std::string(member) + "}";
}
std::string rsa_token() { return dotted(b64(R"({"alg":"RS256"})"), kPayload, kRsaSignature); }
std::string ec_token() { return dotted(b64(R"({"alg":"ES256"})"), kPayload, kEcSignature); }

TEST(Jws, Rfc7515A2Rs256) {
  const auto verified = verify_jws(rsa_token(), set_of(kRsa));
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_TRUE(verified->payload.starts_with("{\"iss\":\"joe\",\r\n"));
}
TEST(Jws, Rfc7515A3Es256) { EXPECT_TRUE(verify_jws(ec_token(), set_of(kP256))); }
TEST(Jws, Rfc7515A4Es512) {
  const auto verified = verify_jws(dotted("eyJhbGciOiJFUzUxMiJ9", "UGF5bG9hZA", kP521Signature), set_of(kP521));
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_EQ(verified->payload, "Payload") << "not JSON: claims are another layer's";
}
TEST(Jws, Rfc8037A4EdDsa) {
  EXPECT_TRUE(verify_jws(dotted("eyJhbGciOiJFZERTQSJ9", "RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc", kEdSignature), set_of(kEd)));
}
TEST(Jws, Rfc7515A1AndA5AreRefused) {
  const KeySet all = *parse_jwks("{\"keys\":[" + std::string(kRsa) + "," + std::string(kP256) + "," + std::string(kEd) + "]}");
  EXPECT_FALSE(verify_jws(
      dotted("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", kPayload, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), all));
  EXPECT_FALSE(verify_jws(dotted("eyJhbGciOiJub25lIn0", kPayload, ""), all));
}

struct Signer {
  explicit Signer(EVP_PKEY* made) : key(made, EVP_PKEY_free) {}
  std::shared_ptr<EVP_PKEY> key;
  [[nodiscard]] std::string pem() const {
    const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
    PEM_write_bio_PUBKEY(bio.get(), key.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
  [[nodiscard]] KeySet set(std::string alg = "") const { return {*parse_pem(pem(), std::move(alg))}; }
  [[nodiscard]] std::string sign(std::string_view header, std::string_view payload, const EVP_MD* digest,
                                 bool pss = false) const {
    const std::string text = b64(header) + "." + b64(payload);
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_PKEY_CTX* options = nullptr;
    EVP_DigestSignInit(context.get(), &options, digest, nullptr, key.get());
    if (pss) {
      EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
    }
    std::size_t size = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size());
    std::string signature(size, '\0');
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes, text.size());
    signature.resize(size);
    return text + "." + b64(signature);
  }
};
const Signer& rsa() {
  static const Signer signer(EVP_RSA_gen(2048));
  return signer;
}

TEST(Jws, EveryRsaAlgorithmVerifiesAndNoneForAnother) {
  const std::pair<const char*, const EVP_MD*> kDigests[] = {{"256", EVP_sha256()}, {"384", EVP_sha384()}, {"512", EVP_sha512()}};
  for (const auto& [bits, digest] : kDigests)
    for (const bool pss : {false, true}) {
      const std::string alg = (pss ? "PS" : "RS") + std::string(bits), other = (pss ? "RS" : "PS") + std::string(bits);
      const std::string token = rsa().sign("{\"alg\":\"" + alg + "\"}", "{}", digest, pss);
      EXPECT_TRUE(verify_jws(token, rsa().set())) << alg;
      EXPECT_TRUE(verify_jws(token, rsa().set(alg))) << alg;
      EXPECT_FALSE(verify_jws(token, rsa().set(other))) << "the key permits " << other;
      EXPECT_FALSE(verify_jws(rsa().sign("{\"alg\":\"" + other + "\"}", "{}", digest, pss), rsa().set())) << alg;
    }
}

TEST(Jws, ThePublicKeyIsNoSecretForHmac) {
  const std::string text = b64(R"({"alg":"HS256"})") + "." + b64("{}"), pem = rsa().pem();
  std::string mac(32, '\0');
  HMAC(EVP_sha256(), pem.data(), static_cast<int>(pem.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(mac.data()), nullptr);
  EXPECT_FALSE(verify_jws(text + "." + b64(mac), rsa().set()));
  EXPECT_FALSE(verify_jws(text + "." + b64(mac), rsa().set("HS256")));
}

TEST(Jws, NoSpellingOfNoneIsTaken) {
  for (const char* alg : {"none", "None", "NONE", "nOnE", "", "RS256 ", "rs256", "HS512", "RSA1_5", "ES256K"})
    for (const std::string_view signature : {std::string_view(""), kRsaSignature})
      EXPECT_FALSE(verify_jws(dotted(b64("{\"alg\":\"" + std::string(alg) + "\"}"), kPayload, signature), set_of(kRsa))) << alg;
}

TEST(Jws, TheHeaderIsOneStrictJsonObject) {
  for (const char* header :
       {R"({"alg":"RS256","alg":"none"})", R"({"alg":"none","alg":"RS256"})", R"([{"alg":"RS256"}])", R"({"alg":["RS256"]})",
        R"({"alg":"RS256"} )"
        "x",
        R"({"alg":null})", R"({})", R"("RS256")", "", R"({"alg":"RS256","kid":5})", R"({"alg":"RS256",})",
        R"({"alg":"RS256","crit":["exp"]})", R"({"alg":"RS256","crit":[]})", R"({"alg":"RS256","b64":false})"})
    EXPECT_FALSE(verify_jws(rsa().sign(header, "{}", EVP_sha256()), rsa().set())) << header;
  EXPECT_TRUE(verify_jws(rsa().sign(R"({"alg":"RS256","typ":"at+jwt"})", "{}", EVP_sha256()), rsa().set()));
}

TEST(Jws, KeysInTheTokenAreNotLookedAt) {
  const Signer attacker(EVP_RSA_gen(2048));
  for (const char* member :
       {R"("jku":"https://evil.example/keys")", R"("x5u":"https://evil.example/x")", R"("jwk":{"kty":"RSA"})",
        R"("x5c":["MIIB"])", R"("kid":"../../../dev/null")", R"("kid":"' OR 1=1 --")", R"("kid":"")"})
    EXPECT_FALSE(verify_jws(attacker.sign("{\"alg\":\"RS256\"," + std::string(member) + "}", "{}", EVP_sha256()), rsa().set()));
}

TEST(Jws, KidChoosesTheKey) {
  const std::string one = with_member(kRsa, R"("kid":"one")");
  const std::string header = R"({"alg":"RS256","kid":"two"})";
  EXPECT_TRUE(verify_jws(rsa_token(), set_of(one)));
  KeySet keys = rsa().set();
  keys[0].kid = "one";
  EXPECT_FALSE(verify_jws(rsa().sign(header, "{}", EVP_sha256()), keys));
  keys[0].kid = "two";
  EXPECT_TRUE(verify_jws(rsa().sign(header, "{}", EVP_sha256()), keys));
}

TEST(Jws, Base64HasOneSpelling) {
  const std::string good = ec_token();
  ASSERT_TRUE(verify_jws(good, set_of(kP256)));
  std::string odd_bits = good;
  odd_bits.back() = 'V';  // "1Q" and "1V" would be the same byte
  for (const std::string& token :
       {good + "=", good + " ", good + "\n", " " + good, good + ".", good + ".x", odd_bits, std::string(good).insert(30, "\n"),
        std::string(good).insert(30, "="), good.substr(0, good.size() - 1)})
    EXPECT_FALSE(verify_jws(token, set_of(kP256))) << token;
  std::string plain = rsa_token();
  for (char& c : plain) c = c == '-' ? '+' : c == '_' ? '/' : c;
  EXPECT_FALSE(verify_jws(plain, set_of(kRsa)));
}

TEST(Jws, AnEcdsaSignatureIsTwoNumbersOfFixedLengthAboveZero) {
  const std::string head = b64(R"({"alg":"ES256"})") + "." + std::string(kPayload) + ".";
  const std::string zero(32, '\0'), one = std::string(31, '\0') + '\1', good = *base64url_decode(kEcSignature);
  const std::string der = "\x30\x44\x02\x20" + good.substr(0, 32) + "\x02\x20" + good.substr(32);
  for (const std::string& signature : {zero + zero, zero + one, one + zero, one + one, std::string(64, '\xff'), der, good + '\0',
                                       '\0' + good, good.substr(0, 63), std::string()})
    EXPECT_FALSE(verify_jws(head + b64(signature), set_of(kP256)));
}

TEST(Jws, AKeyOfAnotherTypeVerifiesNothing) {
  EXPECT_FALSE(verify_jws(ec_token(), set_of(kP521)));
  EXPECT_FALSE(verify_jws(ec_token(), set_of(kRsa)));
  EXPECT_FALSE(verify_jws(dotted(b64(R"({"alg":"ES384"})"), kPayload, kEcSignature), set_of(kP256)));
}

TEST(Jws, ItsSizeIsBounded) {
  const std::string huge = R"({"alg":"RS256","x":")" + std::string(kMaxTokenHeader, 'x') + "\"}";
  EXPECT_FALSE(verify_jws(rsa().sign(huge, "{}", EVP_sha256()), rsa().set()));
  EXPECT_FALSE(verify_jws(rsa().sign(R"({"alg":"RS256"})", std::string(kMaxToken, 'x'), EVP_sha256()), rsa().set()));
  std::string deep = R"({"alg":"RS256","x":)" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_FALSE(verify_jws(rsa().sign(deep, "{}", EVP_sha256()), rsa().set()));
}

TEST(Jwk, WhatCannotVerifySafelyIsRefusedOrLeftOut) {
  const auto set = [](const std::string& jwk) { return parse_jwks("{\"keys\":[" + jwk + "]}"); };
  EXPECT_FALSE(set(R"({"kty":"oct","k":"AAAA"})")) << "nothing is left";
  EXPECT_FALSE(set(with_member(kRsa, R"("use":"enc")")));
  EXPECT_FALSE(set(with_member(kRsa, R"("key_ops":["encrypt"])")));
  EXPECT_TRUE(set(with_member(kRsa, R"("key_ops":["verify"],"use":"sig")")));
  EXPECT_FALSE(set(R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"f83OJ3D2xF1Bg8vub9t)"
                   R"(Le1gHMzV76e8Tus9uPHvRVEU"})"))
      << "a point that is not on the curve";
  EXPECT_FALSE(set(R"({"kty":"RSA","n":")" + b64("\xc1" + std::string(127, '\x01')) + R"(","e":"AQAB"})")) << "1024 bits";
  EXPECT_FALSE(set(with_member(kRsa, R"("n":"AQAB")"))) << "a member twice";
  const auto both = set(std::string(R"({"kty":"oct","k":"AAAA"},)") + std::string(kEd));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->size(), 1u);
}

TEST(Jwk, OfTheVariableAnRsaKeyPermitsRs256Alone) {
  std::string base64 = b64(rsa().pem());
  for (char& c : base64) c = c == '-' ? '+' : c == '_' ? '/' : c;
  const auto key = key_of_variable(base64 + "=\n");
  ASSERT_TRUE(key) << key.error().text();
  EXPECT_EQ(key->alg, "RS256");
  for (const std::string& wrong : {std::string("x"), b64("text"), rsa().pem(), std::string()})
    EXPECT_FALSE(key_of_variable(wrong));
}

constexpr std::string_view kAreas2[] = {"bash", "file"};
constexpr std::int64_t kNow = 1'800'000'000;

bool good(std::string_view claims, const ClaimRules& rules = {}) {
  return principal_of_claims(claims, rules, kAreas2, kNow).has_value();
}

TEST(Claims, ATokenHasAnEndAndTwoClocksDifferByAMinuteAtMost) {
  EXPECT_TRUE(good(R"({"exp":1800000001})"));
  EXPECT_TRUE(good(R"({"exp":1799999941})"));
  EXPECT_FALSE(good(R"({"exp":1799999940})"));
  EXPECT_TRUE(good(R"({"exp":1800000001.5})"));
  for (const char* claims : {"{}", R"({"exp":null})", R"({"exp":"1800000001"})", R"({"exp":-1})", R"({"exp":1e300})", "[]", "",
                             "x", R"({"exp":true})", R"({"exp":1,"exp":1900000000})"})
    EXPECT_FALSE(good(claims)) << claims;
}

TEST(Claims, ATokenOfTheFutureIsRefused) {
  EXPECT_TRUE(good(R"({"exp":1900000000,"nbf":1800000060,"iat":1800000060})"));
  EXPECT_FALSE(good(R"({"exp":1900000000,"nbf":1800000061})"));
  EXPECT_FALSE(good(R"({"exp":1900000000,"iat":1800000061})"));
}

TEST(Claims, IssuerAndAudience) {
  const ClaimRules rules{.issuer = "https://id.example", .audience = "caisson"};
  EXPECT_TRUE(good(R"({"exp":1900000000,"iss":"https://id.example","aud":"caisson"})", rules));
  EXPECT_TRUE(good(R"({"exp":1900000000,"iss":"https://id.example","aud":["x","caisson"]})", rules));
  for (const char* claims : {R"({"exp":1900000000,"aud":"caisson"})", R"({"exp":1900000000,"iss":"https://id.example"})",
                             R"({"exp":1900000000,"iss":"https://id.example/","aud":"caisson"})",
                             R"({"exp":1900000000,"iss":["https://id.example"],"aud":"caisson"})",
                             R"({"exp":1900000000,"iss":"https://id.example","aud":["x"]})",
                             R"({"exp":1900000000,"iss":"https://id.example","aud":{"caisson":1}})"})
    EXPECT_FALSE(good(claims, rules)) << claims;
  EXPECT_FALSE(good(R"({"exp":1900000000,"aud":"other"})")) << "for somebody else, as far as we know";
}

TEST(Claims, ScopeAndWorkspaceAreBounds) {
  const auto bound = principal_of_claims(
      R"({"exp":1900000000,"scope":"openid file:read","caisson_workspace":"w1","sub":"a\u0000b c"})", {}, kAreas2, kNow);
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->bounds.workspace, "w1");
  EXPECT_FALSE(bound->bounds.scopes.permits("bash", Access::read));
  EXPECT_EQ(bound->name, "jwt:abc");
  for (const char* claims : {R"({"exp":1900000000,"scope":["*"]})", R"({"exp":1900000000,"caisson_workspace":""})",
                             R"({"exp":1900000000,"caisson_workspace":null})"})
    EXPECT_FALSE(good(claims)) << claims;
}

TEST(JwtVerifier, RemembersATokenUntilItsEndOnly) {
  JwtVerifier verifier({.key = rsa().set()[0]}, {});
  const std::string token = rsa().sign(R"({"alg":"RS256"})", R"({"exp":1800000000})", EVP_sha256());
  EXPECT_TRUE(verifier.verify(token, kNow));
  EXPECT_EQ(verifier.remembered(), 1u);
  EXPECT_TRUE(verifier.verify(token, kNow + 59));
  EXPECT_FALSE(verifier.verify(token, kNow + 60));
  EXPECT_FALSE(verifier.verify(token + "x", kNow));
  EXPECT_EQ(verifier.remembered(), 0u);
}

TEST(JwtVerifier, RemembersABoundedNumber) {
  const Signer ed(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  JwtVerifier verifier({.key = ed.set()[0]}, {});
  for (std::size_t i = 0; i < JwtVerifier::kMaxRemembered + 10; ++i)
    ASSERT_TRUE(
        verifier.verify(ed.sign(R"({"alg":"EdDSA"})", "{\"exp\":" + std::to_string(1'900'000'000 + i) + "}", nullptr), kNow));
  EXPECT_EQ(verifier.remembered(), JwtVerifier::kMaxRemembered);
}

}  // namespace
}  // namespace caisson::auth
