// The one parser: what it refuses, that numbers stay exact, and that lines are right.
#include "launcher/common/tables/lines.h"

#include <gtest/gtest.h>

namespace caisson::json {
namespace {

std::string error(std::string_view text, const Bounds& bounds = {}) {
  const auto result = parse(text, bounds);
  if (result) return "";
  EXPECT_EQ(result.error().code, Code::invalid_argument);
  return result.error().what;
}

TEST(Json, ParsesWhatIsJson) {
  const auto value = parse(R"( {"a": [1, -2, 3.5, true, false, null, "x\n"], "b": {}} )");
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"].size(), 7U);
  EXPECT_EQ((*value)["a"][6], "x\n");
  EXPECT_TRUE((*value)["b"].is_object());
}

TEST(Json, DuplicateKeysAreRefusedAtAnyDepth) {
  EXPECT_EQ(error(R"({"a": 1, "a": 1})"), "line 1: duplicate key 'a'");
  EXPECT_EQ(error("{\"x\": [{\"a\": 1,\n\"a\": 2}]}"), "line 2: duplicate key 'a'");
  EXPECT_EQ(error(R"({"a": 1, "\u0061": 2})"), "line 1: duplicate key 'a'");
  EXPECT_EQ(error(R"([{"a": 1}, {"a": 2}])"), "");
}

TEST(Json, BoundsHoldExactly) {
  EXPECT_EQ(error("[1]", {.max_bytes = 3}), "");
  EXPECT_EQ(error("[1] ", {.max_bytes = 3}), "line 1: larger than 3 bytes");
  EXPECT_EQ(error("[[1]]", {.max_depth = 2}), "");
  EXPECT_EQ(error("[[[]]]", {.max_depth = 2}), "line 1: nested deeper than 2");
  EXPECT_EQ(error("[1,2]", {.max_values = 3}), "");
  EXPECT_EQ(error("[1,2,3]", {.max_values = 3}), "line 1: more than 3 values");
  EXPECT_EQ(error(R"({"a":1,"b":2})", {.max_values = 4}), "line 1: more than 4 values");
}

TEST(Json, DeepNestingFailsWithoutRecursion) { EXPECT_EQ(error(std::string(60'000, '[')), "line 1: nested deeper than 32"); }

TEST(Json, WhatIsNotJsonIsRefused) {
  for (const char* text :
       {"",   " ",  "{",   "[1,]",     "{\"a\":1,}", "{'a':1}",  "{a:1}",   "[1] x",     "nul",         "01",  "+1",
        "1.", ".5", "NaN", "Infinity", "\"\\x\"",    "\"a\nb\"", "// c\n1", "/* c */ 1", "\"\\ud800\"", "[1}", "\"\\u12\""})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(Json, OnlyUtf8) {
  EXPECT_TRUE(parse("\"\xc3\xa9\""));
  for (const char* text : {"\"\xff\"", "\"\xc3\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\""})
    EXPECT_FALSE(parse(text));
}

TEST(Json, NulInsideTextIsSeenNotCutOff) {
  EXPECT_EQ(error(std::string_view("1\n\0 2", 5)), "line 2: NUL byte");
  const auto value = parse(R"("a\u0000b")");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->get<std::string>().size(), 3U);
}

TEST(Json, AByteOrderMarkIsRefused) { EXPECT_EQ(error("\xef\xbb\xbf{}"), "line 1: byte order mark"); }

TEST(Json, IntegersAreExactAndHugeOnesAreNotIntegers) {
  EXPECT_EQ(parse("9223372036854775807")->get<std::int64_t>(), INT64_MAX);
  EXPECT_EQ(parse("18446744073709551615")->get<std::uint64_t>(), UINT64_MAX);
  EXPECT_TRUE(parse("18446744073709551616")->is_number_float());
  EXPECT_FALSE(parse("1e400"));
}

TEST(Json, LinesAreThoseOfKeysAndElements) {
  Lines lines;
  ASSERT_TRUE(parse_with_lines("{\n \"a\": 1,\n \"b\": [\n  2,\n  \"x\"\n ],\n \"c/d\": {\"e\": 3\n}\n}", {}, lines));
  EXPECT_EQ(lines.at(""), 1);
  EXPECT_EQ(lines.at("/a"), 2);
  EXPECT_EQ(lines.at("/b"), 3);
  EXPECT_EQ(lines.at("/b/0"), 4);
  EXPECT_EQ(lines.at("/b/1"), 5);
  EXPECT_EQ(lines.at("/c~1d/e"), 7);
}

TEST(Json, TypedReads) {
  const Value object = *parse(R"({"s": "x", "n": null, "i": -5, "big": 18446744073709551615, "f": 1.0, "b": true})");
  EXPECT_EQ(*get_string(object, "s"), "x");
  EXPECT_EQ(*get_string(object, "n"), std::nullopt);
  EXPECT_EQ(*get_string(object, "absent"), std::nullopt);
  EXPECT_EQ(get_string(object, "i").error().what, "'i' must be a string");
  EXPECT_EQ(*get_int(object, "i"), -5);
  EXPECT_EQ(get_int(object, "f").error().what, "'f' must be an integer");
  EXPECT_EQ(get_int(object, "big").error().what, "'big' must be a smaller integer");
  EXPECT_EQ(*get_bool(object, "b"), true);
  EXPECT_EQ(get_bool(object, "s").error().what, "'s' must be true or false");
  EXPECT_EQ(*get_int(Value::array(), "i"), std::nullopt);
}

TEST(Json, DumpNeverThrows) {
  EXPECT_EQ(dump(Value("a\xff"
                       "b")),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ(dump(Value{{"b", 1}, {"a", 2}}), R"({"a":2,"b":1})");
}

TEST(Json, PointerTokensAreEscaped) { EXPECT_EQ(pointer_token("a/b~c"), "a~1b~0c"); }

}  // namespace
}  // namespace caisson::json
