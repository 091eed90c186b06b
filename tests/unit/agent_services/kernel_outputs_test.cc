// What a cell has put out, from the events of a bridge that may lie.
#include "agent/services/notebook/kernel_outputs.h"

#include <gtest/gtest.h>

namespace caisson::testing {
namespace {

using services::KernelOutputs;

json::Value head(const char* event, const char* display = nullptr) {
  json::Value out = {{"event", event}};
  if (display != nullptr) out["display"] = display;
  return out;
}
std::string stream(std::string name, std::string text) {
  return json::dump({{"output_type", "stream"}, {"name", std::move(name)}, {"text", std::move(text)}});
}
std::string shown(std::string text) {
  return json::dump(
      {{"output_type", "display_data"}, {"data", {{"text/plain", std::move(text)}}}, {"metadata", json::Value::object()}});
}
std::string text_of(const services::KernelOutput& output) { return (*output.data)["text/plain"].get<std::string>(); }

TEST(KernelOutputs, ConsecutiveTextOfOneStreamIsOneOutput) {
  KernelOutputs outputs(1000, 10);
  for (const char* text : {"a", "b"}) outputs.take(head("output"), stream("stdout", text));
  outputs.take(head("output"), stream("stderr", "e"));
  outputs.take(head("output"), stream("stdout", "c"));
  const auto all = outputs.release();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].text, "ab");
  EXPECT_EQ(all[1].name, "stderr");
  EXPECT_EQ(all[2].text, "c");
}

TEST(KernelOutputs, ADisplayIsReplacedByItsUpdate) {
  KernelOutputs outputs(1000, 10);
  outputs.take(head("output", "d"), shown("one"));
  outputs.take(head("output"), shown("other"));
  outputs.take(head("update", "d"), shown("two"));
  const auto all = outputs.release();
  EXPECT_EQ(text_of(all[0]), "two");
  EXPECT_EQ(text_of(all[1]), "other");
}

TEST(KernelOutputs, UpdatesOfOneDisplayCountOnceHoweverManyThereAre) {
  KernelOutputs outputs(1000, 10);
  outputs.take(head("output", "bar"), shown("0 %"));
  for (int i = 1; i <= 1000; ++i) outputs.take(head("update", "bar"), shown(std::to_string(i)));
  EXPECT_EQ(outputs.dropped(), 0u);
  EXPECT_EQ(text_of(outputs.release()[0]), "1000");
}

TEST(KernelOutputs, ClearForgetsAtOnceOrWithTheNextOutput) {
  KernelOutputs outputs(1000, 10);
  outputs.take(head("output"), shown("old"));
  json::Value later = head("clear");
  later["wait"] = true;
  outputs.take(later, "{}");
  outputs.take(head("output"), shown("new"));
  outputs.take(head("output"), shown("newer"));
  const auto all = outputs.release();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(text_of(all[0]), "new");
}

TEST(KernelOutputs, WhatIsBeyondTheBytesIsDroppedAndCounted) {
  KernelOutputs outputs(100, 10);
  outputs.take(head("output"), stream("stdout", std::string(90, 'x')));
  outputs.take(head("output"), stream("stdout", std::string(20, 'y')));
  EXPECT_EQ(outputs.dropped(), 20u);
  EXPECT_EQ(outputs.release()[0].text, std::string(90, 'x'));
}

TEST(KernelOutputs, WhatIsBeyondTheCountIsDroppedButAnErrorIsNot) {
  KernelOutputs outputs(10'000, 2);
  for (int i = 0; i < 5; ++i) outputs.take(head("output"), shown("x"));
  for (int i = 0; i < 50; ++i)
    outputs.take(head("output"), R"({"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["l"]})");
  EXPECT_GT(outputs.dropped(), 0u);
  const auto all = outputs.release();
  EXPECT_LE(all.size(), 10u);
  EXPECT_EQ(all[2].ename, "E");
}

TEST(KernelOutputs, WhatIsNoOutputChangesNothing) {
  KernelOutputs outputs(1000, 10);
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const std::string& lie : {std::string("no json"), std::string("[]"), std::string(R"({"output_type": 5})"),
                                 std::string(R"({"output_type": "stream", "text": 5})"), "{\"output_type\": " + deep + "}"})
    outputs.take(head("output"), lie);
  outputs.take(head("unheard-of"), shown("x"));
  outputs.take(json::Value::object(), shown("x"));
  EXPECT_TRUE(outputs.release().empty());
}

TEST(KernelOutputs, FieldsOfTheWrongTypeAreEmpty) {
  KernelOutputs outputs(1000, 10);
  outputs.take(head("output"), R"({"output_type": "execute_result", "data": 5, "metadata": [], "execution_count": "x"})");
  outputs.take(head("output"), R"({"output_type": "error", "ename": 1, "traceback": ["a", 2]})");
  const auto all = outputs.release();
  EXPECT_EQ(*all[0].data, json::Value::object());
  EXPECT_FALSE(all[0].execution_count);
  EXPECT_EQ(all[1].ename, "");
  EXPECT_EQ(*all[1].traceback, std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace caisson::testing
