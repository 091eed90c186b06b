// Where a placeholder becomes a secret, and where it is an alarm.
#include "launcher/egress/secret/replace.h"

#include <gtest/gtest.h>

#include "launcher/egress/parse/base64.h"

namespace caisson::egress {
namespace {

constexpr const char *kPlaceholder = "ghp_placeholder0001", *kSecret = "ghp_thesecretitself9", *kOther = "key-placeholder-0002";

std::vector<Bound> bounds() {
  Binding token{.name = "token", .placeholder = kPlaceholder, .host = "api.test", .field = "authorization", .file = "/s"};
  token.methods = {"GET", "POST"};
  token.path = "/repos/one";
  const Binding key{.name = "key", .placeholder = kOther, .host = "api.test", .field = "x-api-key", .file = "/k"};
  return {{token, kSecret}, {key, "the-key-of-the-api"}};
}

Replaced replaced(const std::string& request, const char* host = "api.test", std::uint16_t port = 443,
                  const std::vector<Bound>& by = bounds()) {
  HeadScan scan;
  RequestHead head;
  const Outcome read = read_request_head(request, scan, head);
  EXPECT_TRUE(read.done()) << request << read.why;
  Replaced out = replace(head, {*read_host(host), port}, by);
  for (const Bound*& one : out.used) one = &by[static_cast<std::size_t>(one - by.data())];
  return out;
}

std::string request(const std::string& fields, const std::string& line = "GET /repos/one/x HTTP/1.1") {
  return line + "\r\nHost: api.test\r\n" + fields + "\r\n\r\n";
}

TEST(Replace, ATokenIsReplacedWhereItMayStand) {
  for (const std::string scheme : {"Bearer ", "bearer ", "token ", ""}) {
    const Replaced out = replaced(request("Authorization: " + scheme + kPlaceholder));
    EXPECT_EQ(out.refusal, Refusal::none) << out.detail;
    EXPECT_EQ(out.text, "GET /repos/one/x HTTP/1.1\r\nHost: api.test\r\nAuthorization: " + scheme + kSecret +
                            "\r\nAccept-Encoding: identity\r\n\r\n");
    EXPECT_EQ(out.used.size(), 1U);
  }
}

TEST(Replace, BasicIsReplacedInUserAndPassword) {
  for (const auto& [user, password] :
       {std::pair<std::string, std::string>(kPlaceholder, "x-oauth-basic"), {"git", kPlaceholder}}) {
    const Replaced out = replaced(request("Authorization: Basic " + base64(user + ":" + password)));
    const std::string meant = (user == kPlaceholder ? kSecret : user) + ":" + (password == kPlaceholder ? kSecret : password);
    EXPECT_TRUE(out.text.contains("Authorization: Basic " + base64(meant) + "\r\n")) << out.text;
  }
}

TEST(Replace, ANamedFieldIsReplacedAsAWhole) {
  const Replaced out = replaced(request(std::string("X-API-Key: ") + kOther, "DELETE /any HTTP/1.1"));
  EXPECT_TRUE(out.text.contains("X-API-Key: the-key-of-the-api\r\n")) << out.text;
}

TEST(Replace, ARequestWithoutPlaceholdersGoesAsItIs) {
  const Replaced out =
      replaced(request("Authorization: Bearer of-its-own\r\nAccept-Encoding: gzip\r\nAccept: */*", "PUT /y?q HTTP/1.1"));
  EXPECT_EQ(out.text,
            "PUT /y?q HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer of-its-own\r\nAccept: */*\r\n"
            "Accept-Encoding: identity\r\n\r\n");
  EXPECT_TRUE(out.used.empty());
}

// Whose answers could not be searched for the secret.
TEST(Replace, NothingAsksForPartsOrOtherCharacters) {
  const Replaced out =
      replaced(request("Range: bytes=0-5\r\nIf-Range: x\r\nREQUEST-RANGE: bytes=1-2\r\nAccept-Charset: utf-16\r\nA: b"));
  EXPECT_EQ(out.text, "GET /repos/one/x HTTP/1.1\r\nHost: api.test\r\nA: b\r\nAccept-Encoding: identity\r\n\r\n");
}

TEST(Replace, WhatIsBoundToAWholeHostMayHaveAnyMethod) {
  const Replaced out =
      replaced(request(std::string("X-HTTP-Method-Override: PUT\r\nX-API-Key: ") + kOther, "POST /any HTTP/1.1"));
  EXPECT_TRUE(out.text.contains("X-API-Key: the-key-of-the-api\r\n")) << out.detail;
}

TEST(Replace, AnywhereElseItIsAnAlarm) {
  const std::string p = kPlaceholder, bearer = "Authorization: Bearer " + p;
  const std::string elsewhere[] = {
      request("X-Copy: " + p),
      request("Cookie: a=" + p),
      request("Authorization: Bearer x" + p),
      request("Authorization: Bearer " + p + " " + p),
      request("Authorization: Digest " + p),
      request("Authorization: Basic " + base64("x" + p + ":y")),
      request("Authorization: Basic " + base64("a:b:" + p)),
      request("X-Api-Key: " + p),
      request(std::string("Authorization: Bearer ") + kOther),
      request("Accept-Encoding: " + p),
      request("Proxy-Authorization: Bearer " + p),
      request("Connection: close, x-drop\r\nX-Drop: " + p),
      request(p + ": x"),
      request("A: b", "GET /repos/one?token=" + p + " HTTP/1.1"),
      request(bearer, "PUT /repos/one HTTP/1.1"),
      request(bearer, "GET /repos/oneself HTTP/1.1"),
      request(bearer, "GET /repos/one/../two HTTP/1.1"),
      request(bearer, "GET /repos/one/%2e%2E/two HTTP/1.1"),
      request(bearer, "GET /repos/one/..%2Ftwo HTTP/1.1"),
      request(bearer, "GET /repos/one//two HTTP/1.1"),
      request(bearer, "GET / HTTP/1.1"),
      request(bearer, "GET /repos/one/%u002e%u002e/two HTTP/1.1"),
      request(bearer, "GET /repos/one/%c0%ae%c0%ae/two HTTP/1.1"),
      request("X-HTTP-Method-Override: DELETE\r\n" + bearer),
      request(bearer + "\r\nx-original-url: /repos/two"),
  };
  for (const std::string& one : elsewhere) {
    const Replaced out = replaced(one);
    EXPECT_EQ(out.refusal, Refusal::placeholder_elsewhere) << one;
    EXPECT_TRUE(out.text.empty() && out.used.size() == 1) << one;
  }
}

TEST(Replace, AnotherHostOrPortIsElsewhere) {
  const std::string one = request(std::string("Authorization: Bearer ") + kPlaceholder);
  EXPECT_EQ(replaced(one, "other.test").refusal, Refusal::placeholder_elsewhere);
  EXPECT_EQ(replaced(one, "api.test", 8443).refusal, Refusal::placeholder_elsewhere);
}

TEST(Replace, ASecretThatHasNotComeIsNotReplacedByNothing) {
  auto by = bounds();
  by[0].secret.clear();
  const Replaced out = replaced(request(std::string("Authorization: Bearer ") + kPlaceholder), "api.test", 443, by);
  EXPECT_EQ(out.refusal, Refusal::placeholder_unbound);
  EXPECT_TRUE(out.text.empty());
}

TEST(Replace, Base64HasOneForm) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd"}) EXPECT_EQ(from_base64(base64(text)), text);
  for (const std::string none : {"a", "ab", "abc", "ab=c", "a===", "YR==", "YWI*", "=YWI", "YW I"})
    EXPECT_EQ(from_base64(none), std::nullopt) << none;
}

// Nothing that could be searched for is in there: parts and compression are of use.
TEST(Replace, AHostThatKnowsNoSecretIsAskedAsTheSessionAsks) {
  const std::string text = "GET /x HTTP/1.1\r\nHost: other.test\r\nAccept-Encoding: gzip\r\nRange: bytes=0-5\r\n\r\n";
  const Replaced out = replaced(text, "other.test");
  EXPECT_FALSE(out.searched);
  EXPECT_EQ(out.text, text);
  EXPECT_TRUE(replaced(request("A: b")).searched);
}

}  // namespace
}  // namespace caisson::egress
