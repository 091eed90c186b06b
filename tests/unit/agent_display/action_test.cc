#include "agent/display/action.h"

#include <gtest/gtest.h>

#include "agent/display/mouse.h"

namespace caisson::display {
namespace {

using frames::Action;

json::Value head(const char* action, json::Value members = json::Value::object()) {
  members["id"] = 1;
  members["op"] = "action";
  members["action"] = action;
  return members;
}
std::string refused(const json::Value& asked, std::string body = "") {
  const auto parsed = parse_action(asked, std::move(body));
  return parsed ? "accepted" : parsed.error().what;
}

TEST(DisplayProtocol, EveryOperationAndActionIsFoundByItsName) {
  for (const frames::DisplayOpRow& row : frames::kDisplayOps) EXPECT_EQ(frames::display_op(row.name), row.op);
  for (const frames::ActionRow& row : frames::kActions) EXPECT_EQ(frames::find_action(row.name), row.action);
  EXPECT_EQ(frames::display_op(""), std::nullopt);
  EXPECT_EQ(frames::find_action("click"), std::nullopt);
}
TEST(DisplayProtocol, ATableWithoutARowIsNoticed) {
  std::vector<frames::ActionRow> rows(frames::kActions.begin(), frames::kActions.end());
  EXPECT_TRUE(frames::covers_actions(rows));
  std::swap(rows[0], rows[1]);
  EXPECT_FALSE(frames::covers_actions(rows));
}
TEST(DisplayProtocol, AMemberOfAnotherActionIsNamed) {
  EXPECT_EQ(refused(head("CLICK", {{"dx", 1}})), "CLICK takes no member 'dx'");
  EXPECT_EQ(refused(head("MOVE_TO", {{"x", 1}, {"y", 1}, {"", 1}})), "MOVE_TO takes no member ''");
  EXPECT_EQ(refused(head("NOTHING")), "no action is named 'NOTHING'");
  EXPECT_EQ(refused(head("PRESS", {{"key", "a"}}), "text"), "PRESS takes no text");
}

TEST(Action, WhatIsNeededIsNamed) {
  for (const frames::ActionRow& row : frames::kActions)
    if (!row.required.empty())
      EXPECT_EQ(refused(head(std::string(row.name).c_str())),
                std::string(row.name) + " needs '" + std::string(word(row.required, 0)) + "'");
  EXPECT_EQ(refused(head("TYPING")), "there is no text to type");
}
TEST(Action, OneCoordinateAloneIsRefused) {
  EXPECT_EQ(refused(head("CLICK", {{"x", 3}})), "CLICK needs both of 'x' and 'y', or neither");
  EXPECT_EQ(refused(head("DOUBLE_CLICK", {{"y", 3}, {"x", nullptr}})), "DOUBLE_CLICK needs both of 'x' and 'y', or neither");
  EXPECT_EQ(refused(head("CLICK")), "accepted");
}
TEST(Action, FractionsOfAPixelAreCut) {
  EXPECT_EQ(parse_action(head("MOVE_TO", {{"x", 3.9}, {"y", 4}}), "")->at, (Point{.x = 3, .y = 4}));
  EXPECT_EQ(parse_action(head("MOVE_TO", {{"x", -0.5}, {"y", 4}}), "")->at, (Point{.x = -1, .y = 4})) << "off the screen";
}
TEST(Action, NumbersHaveBounds) {
  EXPECT_NE(refused(head("MOVE_TO", {{"x", 1e300}, {"y", 4}})), "accepted");
  EXPECT_NE(refused(head("MOVE_TO", {{"x", "3"}, {"y", 4}})), "accepted");
  EXPECT_NE(refused(head("CLICK", {{"num_clicks", 4}})), "accepted");
  EXPECT_NE(refused(head("CLICK", {{"num_clicks", 0}})), "accepted");
  EXPECT_EQ(refused(head("SCROLL", {{"dx", 100}, {"dy", -100}})), "accepted");
  EXPECT_EQ(refused(head("SCROLL", {{"dy", 101}})), "'dy' must be from -100 to 100");
  EXPECT_EQ(refused(head("WAIT", {{"duration", 60}})), "accepted");
  EXPECT_NE(refused(head("WAIT", {{"duration", 60.1}})), "accepted");
  EXPECT_NE(refused(head("WAIT", {{"duration", 0}})), "accepted");
}
TEST(Action, TheButtonsAreThoseOfX) {
  EXPECT_EQ(parse_action(head("CLICK", {{"button", "right"}}), "")->button, 3);
  EXPECT_EQ(parse_action(head("MOUSE_DOWN", {{"button", "middle"}}), "")->button, 2);
  EXPECT_EQ(parse_action(head("RIGHT_CLICK"), "")->button, 3);
  EXPECT_EQ(parse_action(head("DOUBLE_CLICK"), "")->clicks, 2);
  EXPECT_EQ(refused(head("CLICK", {{"button", "up"}})), "'button' must be left, right or middle, not 'up'");
}
TEST(Action, ATextIsUtf8AndBounded) {
  EXPECT_EQ(refused(head("TYPING"), "\xFF"), "the text is not UTF-8");
  EXPECT_EQ(refused(head("TYPING"), std::string(frames::kMostText, 'x')), "accepted");
  EXPECT_NE(refused(head("TYPING"), std::string(frames::kMostText + 1, 'x')), "accepted");
  EXPECT_EQ(refused(head("TYPING", {{"use_clipboard", false}}), std::string(10'000, 'x')), "accepted");
  EXPECT_NE(refused(head("TYPING", {{"use_clipboard", false}}), std::string(10'001, 'x')), "accepted");
}
TEST(Action, TheKeysOfAHotkeyAreNames) {
  EXPECT_EQ(parse_action(head("HOTKEY", {{"keys", {"ctrl", "c"}}}), "")->keys, (std::vector<std::string>{"ctrl", "c"}));
  EXPECT_NE(refused(head("HOTKEY", {{"keys", json::Value::array()}})), "accepted");
  EXPECT_NE(refused(head("HOTKEY", {{"keys", {1}}})), "accepted");
  EXPECT_NE(refused(head("HOTKEY", {{"keys", "ctrl"}})), "accepted");
  EXPECT_NE(refused(head("HOTKEY", {{"keys", std::vector<std::string>(17, "a")}})), "accepted");
}

TEST(Drag, ItGoesByManyPlacesToTheLast) {
  const std::vector<Point> places = plan_drag({.x = 0, .y = 100}, {.x = 1000, .y = 90});
  EXPECT_GE(places.size(), 10U);
  EXPECT_EQ(places.back(), (Point{.x = 1000, .y = 90}));
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_LE(places[i].x - places[i - 1].x, 100);
}
TEST(Scroll, EachNotchIsAButton) {
  EXPECT_EQ(plan_scroll(0, 2), (std::vector{4, 4}));
  EXPECT_EQ(plan_scroll(0, -1), (std::vector{5}));
  EXPECT_EQ(plan_scroll(1, 0), (std::vector{6}));
  EXPECT_EQ(plan_scroll(-2, 1), (std::vector{4, 7, 7}));
  EXPECT_TRUE(plan_scroll(0, 0).empty());
}
TEST(Screen, APlaceOffTheScreenIsAnErrorWithItsSize) {
  const Size screen{.width = 640, .height = 480};
  EXPECT_TRUE(check_on_screen({.x = 639, .y = 479}, screen));
  EXPECT_EQ(check_on_screen({.x = 640, .y = 0}, screen).error().what,
            "the place 640, 0 is off the screen, which has 640 x 480 pixels");
  EXPECT_FALSE(check_on_screen({.x = 0, .y = -1}, screen));
}

}  // namespace
}  // namespace caisson::display
