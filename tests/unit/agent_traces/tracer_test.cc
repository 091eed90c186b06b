#include "agent/traces/tracer.h"

#include <gtest/gtest.h>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "agent/traces/otlp.h"
#include "agent/traces/traced.h"
#include "launcher/common/base/json.h"

namespace caisson::traces {
namespace {

constexpr const char* kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

struct Collected {
  boost::asio::io_context io{1};
  std::vector<std::string> bodies;
  std::uint32_t posted = 0, dropped = 0;
  bool has_room = true;
  Tracer tracer{io.get_executor(),
                {.service = "s",
                 .post =
                     [this](const std::string& body, std::uint32_t spans) {
                       if (!has_room) return false;
                       bodies.push_back(body);
                       posted += spans;
                       return true;
                     },
                 .dropped = [this](std::uint32_t spans) { dropped += spans; }}};

  void request(const std::string& path = "/x") {
    const auto span = tracer.begin("", "");
    span->path = path;
    tracer.end(*span);
  }
};

json::Value spans_of(const std::string& body) { return json::Value::parse(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]; }

TEST(Tracer, FollowsAParentAndItsState) {
  Collected c;
  const auto span = c.tracer.begin(kParent, "a=1");
  EXPECT_EQ(span->trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(span->parent, "00f067aa0ba902b7");
  EXPECT_EQ(span->state, "a=1");
  EXPECT_EQ(c.tracer.begin("", "a=1")->state, "") << "a state without a parent is nobody's";
  EXPECT_EQ(c.tracer.begin(kParent, std::string(513, 'a'))->state, "");
}

TEST(Tracer, WhoDoesNotSampleGetsNoSpan) {
  Collected c;
  EXPECT_EQ(c.tracer.begin("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", ""), nullptr);
}

TEST(Tracer, BatchesAreBoundedInNumber) {
  Collected c;
  for (std::uint32_t i = 0; i < Tracer::kMostSpans; ++i) c.request();
  EXPECT_TRUE(c.bodies.empty());
  c.request();
  ASSERT_EQ(c.bodies.size(), 1U);
  EXPECT_EQ(spans_of(c.bodies[0]).size(), Tracer::kMostSpans);
  c.tracer.flush();
  EXPECT_EQ(c.posted, Tracer::kMostSpans + 1);
}

TEST(Tracer, BatchesAreBoundedInBytes) {
  Collected c;
  for (int i = 0; i < 200; ++i) c.request(std::string(4096, 'p'));
  c.tracer.flush();
  EXPECT_EQ(c.posted, 200U);
  EXPECT_GT(c.bodies.size(), 1U);
  for (const std::string& body : c.bodies) EXPECT_LT(body.size(), Tracer::kMostBytes + 1024);
}

TEST(Tracer, BatchesAreBoundedInTime) {
  Collected c;
  c.request();
  c.io.run_for(Tracer::kLongest + std::chrono::seconds(2));
  EXPECT_EQ(c.posted, 1U);
}

TEST(Tracer, WhatHasNoRoomIsDroppedAndCounted) {
  Collected c;
  c.has_room = false;
  c.request();
  c.tracer.flush();
  EXPECT_EQ(c.dropped, 1U);
  c.has_room = true;
  c.request();
  c.tracer.flush();
  EXPECT_EQ(c.posted, 1U);
}

TEST(Tracer, ASpanEndsOnceAndAProbeHasNone) {
  Collected c;
  const auto span = c.tracer.begin("", ""), probe = c.tracer.begin("", "");
  probe->wanted = false;
  for (const auto& one : {span, span, probe}) c.tracer.end(*one);
  c.tracer.flush();
  EXPECT_EQ(c.posted, 1U);
}

TEST(Otlp, HostileTextsStayJson) {
  Span span;
  span.trace = new_id(16);
  span.id = new_id(8);
  span.method = "<script>";
  span.path = "/\xff\"\\\n" + std::string(5000, 'a');
  const json::Value one = json::Value::parse("[" + spans_text(span) + "]")[0];
  EXPECT_EQ(one["name"], "HTTP") << "a client must not choose names";
  EXPECT_LT(spans_text(span).size(), 2048U);
}

TEST(Otlp, ARequestHasTheServiceAndAllSpans) {
  Span span;
  span.children.push_back(
      {.name = "session_exec", .id = new_id(8), .attributes = {{"caisson.domain", "bash"}}, .error = "limit"});
  const json::Value body = json::Value::parse(request_text("a\"b\n\xff", spans_text(span) + "," + spans_text(span)));
  EXPECT_EQ(body["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "a\"b\n\uFFFD");
  const json::Value& spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[1]["attributes"].size(), 2U);
  EXPECT_EQ(spans[1]["attributes"][1], json::Value::parse(R"({"key":"error.type","value":{"stringValue":"limit"}})"));
  EXPECT_EQ(spans[1]["status"]["code"], 2);
}

TEST(Otlp, A5xxIsAnErrorAndA4xxIsNot) {
  Span span;
  span.status = 404;
  EXPECT_FALSE(json::Value::parse(spans_text(span)).contains("status"));
  span.status = 500;
  EXPECT_EQ(json::Value::parse(spans_text(span))["status"]["code"], 2);
}

asio::awaitable<int> work(std::string_view error) {
  ChildSpan child(co_await asio::this_coro::executor, "session_exec");
  child.session("s1");
  child.done(error);
  co_return 7;
}

TEST(Traced, WorkIsAChildOfTheRequestThatItIsDoneFor) {
  asio::io_context io(1);
  const auto span = std::make_shared<Span>();
  int result = 0;
  asio::co_spawn(io, with_span(work("limit"), span), [&](const std::exception_ptr&, int value) { result = value; });
  io.run();
  EXPECT_EQ(result, 7);
  ASSERT_EQ(span->children.size(), 1U);
  EXPECT_EQ(span->children[0].error, "limit");
  EXPECT_EQ(span->session, "s1");
}

TEST(Traced, WorkForNoRequestAndAfterItsEndLeavesNothing) {
  asio::io_context io(1);
  const auto ended = std::make_shared<Span>();
  ended->ended = true;
  asio::co_spawn(io, with_span(work(""), ended), asio::detached);
  asio::co_spawn(io, work(""), asio::detached);
  io.run();
  EXPECT_TRUE(ended->children.empty());
}

TEST(Traced, ARequestHasAtMostThirtyTwoChildren) {
  asio::io_context io(1);
  const auto span = std::make_shared<Span>();
  for (int i = 0; i < 40; ++i) asio::co_spawn(io, with_span(work(""), span), asio::detached);
  io.run();
  EXPECT_EQ(span->children.size(), Span::kMostChildren);
  EXPECT_EQ(span->left_out, 8U);
}

TEST(Tracer, ChildrenThatHadNoRoomAreCounted) {
  Collected c;
  const auto span = c.tracer.begin("", "");
  span->left_out = 8;
  c.tracer.end(*span);
  EXPECT_EQ(c.dropped, 8U);
}

}  // namespace
}  // namespace caisson::traces
