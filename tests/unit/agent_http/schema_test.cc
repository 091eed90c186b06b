#include "agent/routes/schema.h"

#include <gtest/gtest.h>

#include "agent/routes/route.h"

namespace caisson::routes {

constexpr std::string_view kColours[] = {"red", "green", "blue"};

struct Part {
  int size = 0;
};
struct Sample {
  std::string command;
  std::optional<double> timeout;
  bool async_mode = false;
  int limit = 50;
  std::optional<std::string> colour;
  std::map<std::string, std::optional<std::string>> env;
  std::vector<Part> parts;
};
struct AllOptional {
  std::optional<std::string> id;
  bool flag = true;
};

template <>
struct Schema<Part> {
  static constexpr std::string_view name = "Part";
  static constexpr auto fields = std::tuple{field("size", &Part::size, "").min(1).max(9)};
};
template <>
struct Schema<Sample> {
  static constexpr std::string_view name = "Sample";
  static constexpr auto fields = std::tuple{field("command", &Sample::command, "What to run").min_length(1).max_length(5),
                                            field("timeout", &Sample::timeout, "Seconds").min(0),
                                            field("async_mode", &Sample::async_mode, "").defaulted(),
                                            field("limit", &Sample::limit, "").defaulted(),
                                            field("colour", &Sample::colour, "").one_of(kColours),
                                            field("env", &Sample::env, "").defaulted(),
                                            field("parts", &Sample::parts, "").defaulted()};
};
template <>
struct Schema<AllOptional> {
  static constexpr std::string_view name = "AllOptional";
  static constexpr auto fields = std::tuple{field("id", &AllOptional::id, ""), field("flag", &AllOptional::flag, "").defaulted()};
};

namespace {

template <class T>
json::Value issues_of(std::string_view body, Unknown unknown = Unknown::ignore) {
  Issues issues;
  (void)decode_body<T>(body, unknown, 1 << 20, issues);
  return issues.detail();
}
json::Value issue(json::Value loc, std::string_view msg, std::string_view type) {
  return {{"loc", std::move(loc)}, {"msg", msg}, {"type", type}};
}
json::Value only(json::Value loc, std::string_view msg, std::string_view type) {
  return json::Value::array({issue(std::move(loc), msg, type)});
}

TEST(Schema, ValuesArrive) {
  Issues issues;
  const auto sample = decode_body<Sample>(
      R"({"command":"ls","timeout":5,"async_mode":true,"colour":"red","env":{"A":"b","C":null},"parts":[{"size":3}],"extra":1})",
      Unknown::ignore, 1 << 20, issues);
  EXPECT_TRUE(issues.empty()) << issues.detail();
  EXPECT_EQ(sample.command, "ls");
  EXPECT_EQ(sample.timeout, 5.0);
  EXPECT_TRUE(sample.async_mode);
  EXPECT_EQ(sample.limit, 50);
  EXPECT_EQ(sample.env.at("A"), "b");
  EXPECT_EQ(sample.env.at("C"), std::nullopt);
  EXPECT_EQ(sample.parts.at(0).size, 3);
}

TEST(Schema, NullMeansAbsent) {
  Issues issues;
  const auto sample =
      decode_body<Sample>(R"({"command":"ls","timeout":null,"async_mode":null,"limit":null})", Unknown::ignore, 999, issues);
  EXPECT_TRUE(issues.empty());
  EXPECT_EQ(sample.limit, 50);
  EXPECT_EQ(issues_of<Sample>(R"({"command":null})"), only({"body", "command"}, "Field required", "missing"));
}

TEST(Schema, EveryErrorIsReportedAtOnce) {
  EXPECT_EQ(issues_of<Sample>(R"({"timeout":"5","async_mode":"x","limit":1.5})"),
            json::Value::array({issue({"body", "command"}, "Field required", "missing"),
                                issue({"body", "timeout"}, "Input should be a valid number", "float_type"),
                                issue({"body", "async_mode"}, "Input should be a valid boolean", "bool_type"),
                                issue({"body", "limit"}, "Input should be a valid integer, got a number with a fractional part",
                                      "int_from_float")}));
}

TEST(Schema, TypesAreChecked) {
  EXPECT_EQ(issues_of<Sample>(R"({"command":5})"), only({"body", "command"}, "Input should be a valid string", "string_type"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","limit":"5"})"),
            only({"body", "limit"}, "Input should be a valid integer", "int_type"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","limit":5.0})"), json::Value::array());
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","limit":99999999999})")[0]["type"], "int_parsing_size");
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","limit":1e300})")[0]["type"], "int_parsing_size");
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","env":[]})"),
            only({"body", "env"}, "Input should be a valid dictionary", "dict_type"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","parts":{}})"),
            only({"body", "parts"}, "Input should be a valid list", "list_type"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","parts":[{"size":2},{}]})"),
            only({"body", "parts", 1, "size"}, "Field required", "missing"));
}

TEST(Schema, BoundsAreChecked) {
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","timeout":-1})"),
            only({"body", "timeout"}, "Input should be greater than or equal to 0", "greater_than_equal"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","parts":[{"size":10}]})"),
            only({"body", "parts", 0, "size"}, "Input should be less than or equal to 9", "less_than_equal"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":""})"),
            only({"body", "command"}, "String should have at least 1 character", "string_too_short"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"éééééé"})"),
            only({"body", "command"}, "String should have at most 5 characters", "string_too_long"));
  EXPECT_EQ(issues_of<Sample>(R"({"command":"ééééé"})"), json::Value::array());
  EXPECT_EQ(issues_of<Sample>(R"({"command":"a","colour":"pink"})"),
            only({"body", "colour"}, "Input should be 'red', 'green' or 'blue'", "literal_error"));
}

TEST(Schema, BodiesThatAreNoObjectsAreRefused) {
  EXPECT_EQ(issues_of<Sample>("{\"command\":")[0]["type"], "json_invalid");
  EXPECT_EQ(issues_of<Sample>("{\"command\":\"a\",\"command\":\"b\"}")[0]["type"], "json_invalid");
  EXPECT_EQ(issues_of<Sample>("[]")[0]["type"], "model_attributes_type");
  EXPECT_EQ(issues_of<Sample>(""), only({"body"}, "Field required", "missing"));
  EXPECT_EQ(issues_of<AllOptional>(""), json::Value::array());
  EXPECT_EQ(issues_of<AllOptional>("null"), json::Value::array());
}

TEST(Schema, UnknownFieldsFollowThePolicy) {
  EXPECT_EQ(issues_of<AllOptional>(R"({"flg":true})"), json::Value::array());
  EXPECT_EQ(issues_of<AllOptional>(R"({"flg":true})", Unknown::reject),
            only({"body", "flg"}, "Extra inputs are not permitted", "extra_forbidden"));
}

TEST(Schema, ErrorsAreBounded) {
  std::string body = R"({"command":"a","parts":[)";
  for (int i = 0; i < 500; ++i) body += "{},";
  EXPECT_EQ(issues_of<Sample>(body + "{}]}").size(), 50u);
}

TEST(Schema, ResponseIsFastApis) {
  Issues issues;
  (void)decode_body<Sample>("{}", Unknown::ignore, 99, issues);
  const http::Response response = validation_response(issues);
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(response.body, R"({"detail":[{"loc":["body","command"],"msg":"Field required","type":"missing"}]})");
}

TEST(Schema, EncodingWritesEveryField) {
  Sample sample;
  sample.command = "x";
  sample.parts = {{4}};
  EXPECT_EQ(encode(sample), json::Value::parse(R"({"command":"x","timeout":null,"async_mode":false,"limit":50,"colour":null,
                                                   "env":{},"parts":[{"size":4}]})"));
}

TEST(Schema, DescriptionFollowsTheFields) {
  Components components;
  EXPECT_EQ(Codec<Sample>::describe({}, components), json::Value::parse(R"({"$ref":"#/components/schemas/Sample"})"));
  const json::Value& sample = components.at("Sample");
  EXPECT_EQ(sample["required"], json::Value::array({"command"}));
  EXPECT_EQ(sample["properties"]["limit"], json::Value::parse(R"({"type":"integer","title":"Limit","default":50})"));
  EXPECT_EQ(sample["properties"]["colour"]["anyOf"][0]["enum"].size(), 3u);
  EXPECT_EQ(sample["properties"]["parts"]["items"]["$ref"], "#/components/schemas/Part");
  EXPECT_EQ(components.at("Part")["properties"]["size"]["maximum"], 9);
}

}  // namespace
}  // namespace caisson::routes
