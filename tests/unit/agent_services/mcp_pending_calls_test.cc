// Calls that wait for their client to come back: whose they are, how many there are, and when they end.
#include <gtest/gtest.h>

#include "agent/http/coro.h"
#include "agent/services/mcp/pending_calls.h"

namespace caisson::services {
namespace {

using namespace std::chrono_literals;

struct PendingCallsTest : testing::Test {
  asio::io_context io;
  PendingCalls calls{io.get_executor(), nullptr, 40ms};
  json::Value offers = {{"elicitation", json::Value::object()}};
  std::vector<mcp::Or<json::Value>> told;

  PendingCallPtr begin(const std::string& owner, const std::string& binding = "b") {
    const auto waiter = std::make_shared<Exchange>(io.get_executor());
    PendingCallPtr call = calls.begin({"server", owner, offers}, nullptr, binding);
    call->attend(waiter, nullptr, json::Value::object(), offers);
    return call;
  }
  static task<void> keep(PendingCallPtr call, std::vector<mcp::Or<json::Value>>* to) {
    json::Value params = {{"message", "who?"}, {"task", 1}};
    to->push_back(co_await PendingCall::ask(std::move(call), "elicitation/create", std::move(params)));
    co_return Status{};
  }
  void ask(const PendingCallPtr& call) {
    spawn(io.get_executor(), "question", keep(call, &told));
    io.restart();
    io.poll();
  }
};

TEST_F(PendingCallsTest, AStateIsOfOneOwnerAndBindingAndUsedOnce) {
  const PendingCallPtr call = begin("a");
  ask(call);
  ASSERT_TRUE(call->asks());
  EXPECT_EQ(call->questions().begin().value(),
            (json::Value{{"method", "elicitation/create"}, {"params", {{"message", "who?"}}}}));
  const std::string state = calls.park(call);
  EXPECT_EQ(state.size(), 32U);
  EXPECT_EQ(calls.find(state, "b", "b"), nullptr);
  EXPECT_EQ(calls.find(state, "a", "c"), nullptr);
  EXPECT_EQ(calls.find("", "a", "b"), nullptr);
  ASSERT_EQ(calls.find(state, "a", "b"), call);
  call->attend(nullptr, nullptr, json::Value::object(), offers);
  EXPECT_EQ(calls.find(state, "a", "b"), nullptr);
  json::Value responses = json::Value::object();
  responses[call->questions().begin().key()] = {{"action", "accept"}, {"resultType", "complete"}};
  responses["unknown"] = json::Value::object();
  call->answer(std::move(responses));
  EXPECT_FALSE(call->asks());
  io.restart();
  io.poll();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].value(), (json::Value{{"action", "accept"}}));
}

TEST_F(PendingCallsTest, OneThatNobodyComesBackForEndsAndItsQuestionsWithIt) {
  const PendingCallPtr call = begin("a");
  ask(call);
  const std::string state = calls.park(call);
  io.restart();
  io.run_for(500ms);
  EXPECT_TRUE(call->over);
  EXPECT_TRUE(call->exchange->called_off);
  EXPECT_EQ(calls.find(state, "a", "b"), nullptr);
  EXPECT_EQ(calls.size(), 0U);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_FALSE(told[0]);
}

TEST_F(PendingCallsTest, OneThatCameBackInTimeGoesOn) {
  const PendingCallPtr call = begin("a");
  ask(call);
  (void)calls.park(call);
  call->attend(nullptr, nullptr, json::Value::object(), offers);
  io.restart();
  io.run_for(200ms);
  EXPECT_FALSE(call->over);
}

TEST_F(PendingCallsTest, WhatIsNotOfferedOrTooMuchIsNotAsked) {
  offers = {{"roots", json::Value::object()}};
  const PendingCallPtr call = begin("a");
  ask(call);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].error().code, mcp::ErrorCode::method_not_found);
  offers = {{"elicitation", json::Value::object()}};
  const PendingCallPtr asked = begin("a");
  for (std::size_t i = 0; i <= PendingCall::kMostQuestions; ++i) ask(asked);
  EXPECT_EQ(asked->questions().size(), PendingCall::kMostQuestions);
  EXPECT_EQ(told.size(), 2U);
  // What is not offered any more is taken back.
  asked->attend(nullptr, nullptr, json::Value::object(), json::Value::object());
  EXPECT_FALSE(asked->asks());
  io.restart();
  io.poll();
  EXPECT_EQ(told.size(), PendingCall::kMostQuestions + 2);
}

TEST_F(PendingCallsTest, AnOwnerHasSoManyAndLosesTheOldestThatWaits) {
  std::vector<PendingCallPtr> all;
  for (std::size_t i = 0; i < PendingCalls::kMostOfOne; ++i) {
    ASSERT_TRUE(calls.has_room_of("a"));
    all.push_back(begin("a"));
  }
  EXPECT_TRUE(calls.has_room_of("b"));
  EXPECT_FALSE(calls.has_room_of("a"));  // a request waits for each
  (void)calls.park(all[1]);
  EXPECT_TRUE(calls.has_room_of("a"));
  EXPECT_TRUE(all[1]->over);
  EXPECT_FALSE(all[0]->over);
  all[0]->finish(json::Value::object());
  calls.end(all[0]);
  EXPECT_EQ(calls.size(), PendingCalls::kMostOfOne - 1);  // its copy stays
  EXPECT_EQ(calls.reuse({"server", "b", offers}, "b"), nullptr);
  EXPECT_NE(calls.reuse({"server", "a", offers}, "b"), nullptr);
  calls.drop("server");
  EXPECT_EQ(calls.size(), 0U);
  EXPECT_TRUE(all[2]->over);
}

TEST(ClientOffers, AreThoseOfTheSchema) {
  const json::Value none = json::Value::object(), url = {{"mode", "url"}}, tools = {{"tools", json::Value::array()}};
  const json::Value form = {{"elicitation", none}, {"sampling", none}, {"tasks", none}};
  EXPECT_TRUE(mcp::offers(form, "elicitation/create", none));
  EXPECT_FALSE(mcp::offers(form, "elicitation/create", url));
  EXPECT_TRUE(mcp::offers(form, "sampling/createMessage", none));
  EXPECT_FALSE(mcp::offers(form, "sampling/createMessage", tools));
  EXPECT_FALSE(mcp::offers(form, "roots/list", none));
  EXPECT_FALSE(mcp::offers(form, "tasks/list", none));
  const json::Value both = {{"elicitation", {{"url", none}, {"form", none}}}, {"sampling", {{"tools", none}}}, {"roots", true}};
  EXPECT_TRUE(mcp::offers(both, "elicitation/create", url));
  EXPECT_TRUE(mcp::offers(both, "elicitation/create", none));
  EXPECT_TRUE(mcp::offers(both, "sampling/createMessage", tools));
  EXPECT_FALSE(mcp::offers(both, "roots/list", none));
  EXPECT_EQ(mcp::askable(form).size(), 2U);
  EXPECT_EQ(mcp::askable(both).size(), 2U);
  EXPECT_TRUE(mcp::askable("x").empty());
}

}  // namespace
}  // namespace caisson::services
