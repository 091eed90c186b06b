#include <gtest/gtest.h>

#include "agent/auth/api_keys.h"
#include "agent/auth/failures.h"
#include "agent/auth/key.h"
#include "agent/auth/origin.h"
#include "agent/auth/secret.h"

namespace caisson::auth {
namespace {

http::Request with(http::Pairs headers, http::Pairs query = {}) {
  http::Request request;
  request.headers = std::move(headers);
  request.query = std::move(query);
  return request;
}

TEST(Key, IsReadFromAllThreePlaces) {
  EXPECT_EQ(key_of(with({{"x-aio-api-key", "a"}})), "a");
  EXPECT_EQ(key_of(with({{"authorization", "bearer  a"}})), "a");
  EXPECT_EQ(key_of(with({}, {{"api_key", "a"}})), "a");
  EXPECT_EQ(key_of(with({{"authorization", "Basic a"}})), std::nullopt);
  EXPECT_EQ(key_of(with({})), std::nullopt);
}

TEST(Key, FirstPlaceDecides) {
  EXPECT_EQ(key_of(with({{"authorization", "Bearer b"}, {"x-aio-api-key", "a"}}, {{"api_key", "c"}})), "a");
}

TEST(Key, OnlyTheWholeKeyMatches) {
  const ApiKeys keys("secret", {});
  EXPECT_NE(keys.by_digest(sha256("secret"), 0), nullptr);
  for (const char* wrong : {"", "secre", "secrets", "Secret", " secret"})
    EXPECT_EQ(keys.by_digest(sha256(wrong), 0), nullptr) << wrong;
  EXPECT_EQ(ApiKeys("", {}).by_digest(sha256(""), 0), nullptr);
}

TEST(Failures, DelayGrowsAndIsForgotten) {
  Failures failures;
  const auto now = Failures::Clock::now();
  EXPECT_EQ(failures.record("192.0.2.1", now).delay.count(), 0);
  for (int i = 0; i < 30; ++i) (void)failures.record("192.0.2.1", now);
  EXPECT_EQ(failures.record("192.0.2.1", now).delay, Failures::kMaxDelay);
  EXPECT_EQ(failures.record("192.0.2.2", now).delay.count(), 0);
  EXPECT_EQ(failures.record("192.0.2.1", now + std::chrono::minutes(5)).delay.count(), 0);
}

TEST(Failures, LogsOncePerHalfMinute) {
  Failures failures;
  const auto now = Failures::Clock::now();
  EXPECT_TRUE(failures.record("192.0.2.1", now).log);
  EXPECT_FALSE(failures.record("192.0.2.1", now).log);
  EXPECT_TRUE(failures.record("192.0.2.1", now + std::chrono::seconds(31)).log);
}

TEST(Failures, MemoryIsBounded) {
  Failures failures;
  const auto now = Failures::Clock::now();
  for (int i = 0; i < 5000; ++i) (void)failures.record("192.0." + std::to_string(i), now);
  EXPECT_LE(failures.size(), Failures::kMaxAddresses);
}

TEST(Failures, OneIpv6NetworkIsOneClient) {
  Failures failures;
  const auto now = Failures::Clock::now();
  (void)failures.record("2001:db8:0:1::1", now);
  (void)failures.record("2001:db8:0:1::2", now);
  EXPECT_EQ(failures.size(), 1u);
}

TEST(Origin, SameSiteIsPermitted) {
  const OriginRule rule("", false);
  EXPECT_TRUE(rule.permits(with({{"host", "a:8080"}})));
  EXPECT_TRUE(rule.permits(with({{"host", "a:8080"}, {"origin", "http://a:8080"}})));
  EXPECT_TRUE(rule.permits(with({{"host", "a"}, {"origin", "https://A:443"}})));
}

TEST(Origin, OtherSitesAreRefused) {
  const OriginRule rule("https://app.example, http://b", false);
  EXPECT_FALSE(rule.permits(with({{"host", "a:8080"}, {"origin", "http://a"}})));
  EXPECT_FALSE(rule.permits(with({{"host", "a"}, {"origin", "http://evil"}})));
  EXPECT_FALSE(rule.permits(with({{"host", "a"}, {"origin", "null"}})));
  EXPECT_FALSE(rule.permits(with({{"host", "a"}, {"origin", "http://app.example"}})));
  EXPECT_TRUE(rule.permits(with({{"host", "a"}, {"origin", "https://app.example"}})));
  EXPECT_TRUE(rule.permits(with({{"host", "a"}, {"origin", "http://b"}})));
}

TEST(Origin, BehindAProxyTheOwnSiteIsWhatTheClientNamed) {
  const OriginRule rule("", false);
  http::Request request = with({{"host", "inner:8080"}, {"origin", "https://public.example"}});
  EXPECT_FALSE(rule.permits(request));
  request.host = "public.example";
  EXPECT_TRUE(rule.permits(request));
}

TEST(Origin, WithoutAuthBothNamesOfAServerBehindAProxyMustBeListed) {
  const OriginRule rule("", true, "inner");
  http::Request request = with({{"host", "inner:8080"}});
  request.host = "evil.example";
  EXPECT_FALSE(rule.knows_host(request));
  request.host = "localhost";
  EXPECT_TRUE(rule.knows_host(request));
  request = with({{"host", "evil.example"}});
  request.host = "localhost";
  EXPECT_FALSE(rule.knows_host(request)) << "a page of a rebound name can send any X-Forwarded-Host";
}

TEST(Origin, Flaw07NoNameIsServedWithoutAuthThatIsNotListed) {
  const OriginRule rule("https://app.example:8443", true, "sandbox, Box.Example:80");
  for (const char* host :
       {"localhost", "LOCALHOST:8080", "localhost.", "a.localhost:1", "127.0.0.1:8080", "10.1.2.3", "[::1]:8080", "[::1]",
        "[2001:db8::1]:80", "[::ffff:127.0.0.1]", "sandbox", "sandbox:8080", "SANDBOX.", "box.example:8080", "app.example"}) {
    EXPECT_TRUE(rule.knows_host(with({{"host", host}}))) << host;
    EXPECT_TRUE(rule.permits(with({{"host", host}, {"origin", std::string("http://") + host}}))) << host;
  }
  for (const char* host : {"evil.example",
                           "evil.example:8080",
                           "127.0.0.1.evil.example",
                           "localhost.evil.example",
                           "notlocalhost",
                           "xlocalhost:80",
                           "",
                           ".",
                           ":8080",
                           "[",
                           "[]",
                           "[evil.example]",
                           "[::1]evil.example",
                           "[::1]:evil",
                           "[::1",
                           "127.0.0.1:evil.example",
                           "localhost:80:evil.example",
                           "1.2.3",
                           "1.2.3.4.5",
                           "256.0.0.1",
                           "x.app.example",
                           "app.example.evil",
                           "sandbox.evil.example"})
    EXPECT_FALSE(rule.knows_host(with({{"host", host}}))) << host;
  EXPECT_FALSE(rule.knows_host(with({}))) << "HTTP/1.0 need not send one";
  EXPECT_FALSE(rule.knows_host(with({{"host", "evil.example"}, {"origin", "https://app.example:8443"}})));
  EXPECT_TRUE(OriginRule("", false).knows_host(with({{"host", "evil.example"}}))) << "with a key, the key protects";
}

}  // namespace
}  // namespace caisson::auth
