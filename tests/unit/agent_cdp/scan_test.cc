// The top level of a message: what is found, what is refused, and that nested keys are nobody's.
#include "agent/cdp/scan.h"

#include <gtest/gtest.h>

namespace caisson::cdp {
namespace {

std::string id_of(const std::string& text) {
  const auto message = scan(text);
  return message ? std::string(message->id.value.of(text)) : "refused: " + message.error().what;
}
bool refused(const std::string& text) { return !scan(text).has_value(); }

TEST(CdpScan, TheTopLevelIsFound) {
  const std::string text = R"( {"id" : 7, "method":"A.b","sessionId":"S","params":{"x":[1,2,{"y":null}]}} )";
  const auto message = scan(text);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id.value.of(text), "7");
  EXPECT_EQ(unquoted(message->method.value.of(text)), "A.b");
  EXPECT_EQ(unquoted(message->session_id.value.of(text)), "S");
  EXPECT_EQ(message->params.value.of(text), R"({"x":[1,2,{"y":null}]})");
  EXPECT_EQ(text[message->open], '{');
}

TEST(CdpScan, KeysOfInnerObjectsAreNotTheMessages) {
  EXPECT_EQ(id_of(R"({"params":{"id":1,"sessionId":"x","method":"y"},"id":2})"), "2");
  EXPECT_EQ(id_of(R"({"params":[{"id":1},"\"id\":3"],"id":2})"), "2");
  EXPECT_EQ(id_of(R"({"params":{"params":{"id":1}}})"), "");
}

TEST(CdpScan, AKeyThatIsThereTwiceIsRefused) {
  EXPECT_TRUE(refused(R"({"id":1,"id":1})"));
  EXPECT_TRUE(refused(R"({"method":"a","id":1,"method":"a"})"));
  EXPECT_TRUE(refused(R"({"sessionId":"a","sessionId":"b"})"));
  EXPECT_FALSE(refused(R"({"foo":1,"foo":2})")) << "a key without a meaning here is the browser's to judge";
}

TEST(CdpScan, AnEscapeWhereIdentityIsToldIsRefused) {
  EXPECT_TRUE(refused(R"({"i\u0064":1})"));
  EXPECT_TRUE(refused(R"({"id":1,"session\u0049d":"x"})"));
  EXPECT_TRUE(refused(R"({"id":1,"method":"Browser\u002eclose"})"));
  EXPECT_TRUE(refused(R"({"id":1,"method":"a","sessionId":"\u0041"})"));
  EXPECT_FALSE(refused(R"({"id":1,"method":"a","params":{"\u0041":"\n"}})"));
}

TEST(CdpScan, WhatIsNoJsonIsRefused) {
  for (const char* text : {"",
                           " ",
                           "[]",
                           "1",
                           "\"x\"",
                           "null",
                           "{",
                           "{\"id\":1",
                           "{\"id\":1,}",
                           "{\"id\"}",
                           "{\"id\":}",
                           "{id:1}",
                           "{\"id\":1}x",
                           "{\"id\":1}{}",
                           "{\"a\":[1,]}",
                           "{\"a\":[1 2]}",
                           "{\"a\":{]}",
                           "{\"a\":[}]",
                           "{\"a\":\"\\x41\"}",
                           "{\"a\":\"\\u00g0\"}",
                           "{\"a\":\"\\u00\"}",
                           "{\"a\":\"\\",
                           "{\"a\":\"\n\"}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":+1}",
                           "{\"a\":1e}",
                           "{\"a\":-}",
                           "{\"a\":nul}",
                           "{\"a\":truely}",
                           "{/**/\"id\":1}",
                           "{\"id\":1/**/}",
                           "{\"id\":1}//",
                           "{'id':1}",
                           "\xef\xbb\xbf{}"})
    EXPECT_TRUE(refused(text)) << text;
}

TEST(CdpScan, EveryFormOfAValueIsTaken) {
  EXPECT_FALSE(
      refused(R"({"a":[],"b":{},"c":[[],{}],"d":-0.5e+3,"e":1E9,"f":true,"g":false,"h":null,"i":"\\\"\/\b\f\n\r\t\u00e9"})"));
  EXPECT_FALSE(refused("{\"a\":\"\xff\xfe\"}")) << "bytes above 127 are not structure";
}

TEST(CdpScan, NestingIsBoundedAndCostsNoStack) {
  const auto nested = [](std::size_t levels) {
    return "{\"params\":" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  EXPECT_FALSE(refused(nested(kMaxDepth - 2)));
  EXPECT_TRUE(refused(nested(kMaxDepth)));
  EXPECT_TRUE(refused("{\"params\":" + std::string(10'000'000, '[')));
}

TEST(CdpScan, EveryTruncationIsRefused) {
  const std::string text = R"({"id":12,"method":"A.b","params":{"a":[1,"\u00e9\"",true,{"b":-1.5e3}]},"sessionId":"S"})";
  ASSERT_FALSE(refused(text));
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_TRUE(refused(text.substr(0, n))) << n;
}

TEST(CdpScan, AMemberIsCutOutWithOneComma) {
  for (const std::string text :
       {R"({"sessionId":"S","id":1})", R"({"id":1 , "sessionId":"S"})", R"({"id":1,"sessionId":"S","a":2})",
        R"({"sessionId":"S"})", R"({ "sessionId" : "S" , "a":2})"}) {
    auto message = scan(text);
    ASSERT_TRUE(message);
    std::string cut = text;
    const Span& whole = message->session_id.whole;
    cut.erase(whole.begin, whole.size());
    const auto again = scan(cut);
    ASSERT_TRUE(again) << cut;
    EXPECT_FALSE(again->session_id.value.there());
    EXPECT_EQ(again->id.value.there(), message->id.value.there());
  }
}

TEST(CdpScan, IntegersOfAnySizeAreTaken) {
  for (const char* good : {"0", "-1", "9007199254740992", "-9223372036854775808", "1234567890123456789012345678901"})
    EXPECT_TRUE(is_integer(good)) << good;
  for (const char* bad : {"", "-", "1.0", "1e3", "\"1\"", "null", "true", "12345678901234567890123456789012"})
    EXPECT_FALSE(is_integer(bad)) << bad;
}

TEST(CdpScan, AnInnerStringIsFoundOnceOrNotAtAll) {
  EXPECT_EQ(inner_string(R"({"sessionId":"S","targetInfo":{"sessionId":"T"}})", "sessionId"), "S");
  EXPECT_EQ(inner_string(R"({"sessionId":"S","sessionId":"T"})", "sessionId"), "");
  EXPECT_EQ(inner_string(R"({"sessionId":"\u0041"})", "sessionId"), "");
  EXPECT_EQ(inner_string(R"({"sessionId":5})", "sessionId"), "");
  EXPECT_EQ(inner_string("", "sessionId"), "");
}

}  // namespace
}  // namespace caisson::cdp
