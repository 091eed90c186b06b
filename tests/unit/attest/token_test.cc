// Signed statements: what a verifier accepts, and everything that it must not.
#include "launcher/common/attest/token.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cli/attest/open_token.h"
#include "launcher/common/attest/base64url.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"

namespace caisson::attest {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

struct Signed : testing::Test {
  Key key = *Key::generate();
  std::string token = *make_token(key, {{"kind", "boot"}}, "nonce-0123", kNow);
  [[nodiscard]] Expectation fresh() const { return {"nonce-0123", 60, kNow + 1}; }
};

std::string with_header(const std::string& token, const json::Value& header) {
  return base64url(json::dump(header)) + token.substr(token.find('.'));
}

TEST(Base64url, IsThatOfRfc4648AndTakesOneSpellingOnly) {
  for (const auto& [bytes, text] : {std::pair("", ""), std::pair("f", "Zg"), std::pair("fo", "Zm8"), std::pair("foo", "Zm9v"),
                                    std::pair("foobar", "Zm9vYmFy"), std::pair("\xff\xfe\xfb", "__77")}) {
    EXPECT_EQ(base64url(bytes), text);
    EXPECT_EQ(from_base64url(text), bytes);
  }
  for (const char* bad : {"Z", "Zg==", "Zh", "Zm9", "Zm9+", "Zm9/", "Zm 9v", "Zm9v\n"}) EXPECT_FALSE(from_base64url(bad)) << bad;
}

// RFC 8037, appendix A: the key and its thumbprint.
TEST(AttestKey, HasTheThumbprintOfRfc8037) {
  const char* pem =
      "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE "
      "KEY-----\n";
  char path[] = "/tmp/caisson-key-XXXXXX";
  const Fd fd(::mkstemp(path));
  ASSERT_TRUE(sys::write_all(fd.get(), pem));
  const auto key = Key::load(path);
  ASSERT_TRUE(key) << key.error().text();
  EXPECT_EQ(key->jwk()["x"], "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  EXPECT_EQ(key->id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
  ASSERT_EQ(::chmod(path, 0640), 0);
  EXPECT_EQ(Key::load(path).error().code, Code::permission_denied) << "a key that others may read";
  ::unlink(path);
}

TEST(AttestKey, AnythingElseIsRefused) {
  char path[] = "/tmp/caisson-key-XXXXXX";
  const Fd fd(::mkstemp(path));
  ASSERT_TRUE(sys::write_all(fd.get(), "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n"));
  EXPECT_EQ(Key::load(path).error().code, Code::invalid_argument);
  ::unlink(path);
  EXPECT_FALSE(Key::load(path)) << "not there";
  EXPECT_FALSE(Key::load("/dev/zero")) << "not a regular file";
}

TEST_F(Signed, OpensWithItsKeyNonceAndTime) {
  const auto claims = open_token(token, key.jwk(), fresh());
  ASSERT_TRUE(claims) << claims.error().text();
  EXPECT_EQ((*claims)["caisson"]["kind"], "boot");
  EXPECT_EQ((*claims)["eat_nonce"], "nonce-0123");
}

TEST_F(Signed, EveryChangedByteIsRefused) {
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(open_token(changed, key.jwk(), fresh())) << "byte " << i;
  }
}

TEST_F(Signed, EveryTruncationIsRefused) {
  for (std::size_t i = 0; i < token.size(); ++i) EXPECT_FALSE(open_token(token.substr(0, i), key.jwk(), fresh())) << i;
  EXPECT_FALSE(open_token(token + ".x", key.jwk(), fresh()));
}

TEST_F(Signed, AnotherKeyNonceOrTimeIsRefused) {
  EXPECT_FALSE(open_token(token, Key::generate()->jwk(), fresh()));
  EXPECT_FALSE(open_token(token, key.jwk(), {"nonce-4567", {}, kNow})) << "a replayed token";
  EXPECT_FALSE(open_token(token, key.jwk(), {{}, 60, kNow + 61})) << "too old";
  EXPECT_FALSE(open_token(token, key.jwk(), {{}, {}, kNow - 61})) << "from the future";
  EXPECT_FALSE(open_token(*make_token(key, {}, "", kNow), key.jwk(), fresh())) << "a token without a nonce";
}

TEST_F(Signed, TheTokenDoesNotChooseTheAlgorithm) {
  for (const char* alg : {"none", "HS256", "RS256", "eddsa", ""})
    EXPECT_FALSE(open_token(with_header(token, {{"alg", alg}}), key.jwk(), fresh())) << alg;
  EXPECT_FALSE(open_token(with_header(token, {{"alg", "EdDSA"}, {"crit", {"x"}}}), key.jwk(), fresh()));
  EXPECT_FALSE(open_token(token, {{"kty", "oct"}, {"k", "AAAA"}}, fresh()));
}

TEST(Nonce, Is8To88CharactersOfUrls) {
  for (const char* good : {"01234567", "a.b_c~d+e/f=g-h", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})
    EXPECT_TRUE(check_nonce(good)) << good;
  EXPECT_FALSE(check_nonce(""));
  EXPECT_FALSE(check_nonce("0123456"));
  EXPECT_FALSE(check_nonce(std::string(89, 'a')));
  EXPECT_FALSE(check_nonce("0123 4567"));
  EXPECT_FALSE(check_nonce("0123456\n"));
}

}  // namespace
}  // namespace caisson::attest
