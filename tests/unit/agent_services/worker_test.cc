// Worker against real programs: ones that behave, and ones that die, lie, flood and fall silent.
#include "agent/services/program/worker.h"

#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

using services::Program;
using services::Worker;
using services::WorkerOptions;
using std::chrono::milliseconds;

// What every program of these tests begins with.
constexpr std::string_view kPrelude = R"(
import json, os, struct, sys, time
inp, out = os.fdopen(0, 'rb'), os.fdopen(1, 'wb')
def take():
    size = inp.read(4)
    if len(size) < 4: os._exit(0)
    head = json.loads(inp.read(struct.unpack('<I', size)[0]))
    return head, inp.read(head.get('bytes', 0))
def raw(data):
    out.write(data); out.flush()
def give(head, body=b''):
    if body: head['bytes'] = len(body)
    text = json.dumps(head).encode()
    raw(struct.pack('<I', len(text)) + text + body)
)";
constexpr std::string_view kEcho = "while True:\n  h, b = take()\n  if 'id' in h: give({'id': h['id'], 'got': h.get('x')}, b)\n";

bridge::ExecRequest python(std::string_view program) {
  bridge::ExecRequest request;
  request.argv = {"python3", "-c", std::string(kPrelude) + std::string(program)};
  return request;
}

class WorkerTest : public ::testing::Test {
 protected:
  void start(std::string_view program, WorkerOptions options = {}) {
    spec.command = python(program);
    auto started = h.run(Worker::start(h.client, spec, std::move(options)));
    ASSERT_TRUE(started) << started.error().text();
    worker = *started;
  }
  Result<frames::Frame> call(json::Value x = nullptr, std::string body = "", milliseconds limit = milliseconds(20'000)) {
    json::Value head = json::Value::object();
    head["x"] = std::move(x);
    return h.run(Worker::call(worker, std::move(head), std::move(body), bridge::Clock::now() + limit));
  }
  // Until the worker has ended by itself.
  void await_end() {
    (void)h.eventually([&] { return !worker->alive(); });
    ASSERT_FALSE(worker->alive());
  }
  Harness h;
  services::ProgramSpec spec{.name = "file worker", .domain = "file", .label = "test", .workspace = "default"};
  Worker::Pointer worker;
};

TEST_F(WorkerTest, AnswersCallsWithHeadAndBytes) {
  start(kEcho);
  auto reply = call("word", "body");
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->head["got"], "word");
  EXPECT_EQ(reply->body, "body");
}

TEST_F(WorkerTest, CarriesLargeBodiesBothWays) {
  start(kEcho);
  std::string body(3'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 1001) body[i] = static_cast<char>(i);
  auto reply = call(1, body);
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_TRUE(reply->body == body);
}

task<std::string> two_at_a_time(Worker::Pointer worker) {
  using asio::experimental::awaitable_operators::operator&&;
  json::Value first = json::Value::object(), second = json::Value::object();
  first["x"] = "first";
  second["x"] = "second";
  auto one = Worker::call(worker, std::move(first), "", bridge::deadline_after(20));
  auto other = Worker::call(worker, std::move(second), "", bridge::deadline_after(20));
  auto both = std::move(one) && std::move(other);
  auto [a, b] = co_await std::move(both);
  if (!a || !b) co_return fail(Code::io, "a call failed");
  co_return a->head["got"].get<std::string>() + "," + b->head["got"].get<std::string>();
}

TEST_F(WorkerTest, RepliesMayComeInAnyOrder) {
  start("a, _ = take(); b, _ = take()\nfor h in (b, a): give({'id': h['id'], 'got': h['x']})\ntake()\n");
  auto both = h.run(two_at_a_time(worker));
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_EQ(*both, "first,second");
}

TEST_F(WorkerTest, FramesWithoutAnIdAreEvents) {
  std::vector<std::string> seen;
  WorkerOptions options;
  options.on_event = [&seen](frames::Frame frame) { seen.push_back(frame.head["event"].get<std::string>() + frame.body); };
  start("h, _ = take()\ngive({'event': 'e'}, b'1')\ngive({'event': 'e'}, b'2')\ngive({'id': h['id']})\ntake()\n", options);
  ASSERT_TRUE(call());
  EXPECT_EQ(seen, (std::vector<std::string>{"e1", "e2"}));
}

TEST_F(WorkerTest, OneThatIsTakenUpIsHeardFromItsMarkOn) {
  auto session = h.run(h.client.session_create("file", "test", "default"));
  ASSERT_TRUE(session) << session.error().text();
  // A frame that was cut, what looks like the beginning of the mark, and the mark in as many pieces as it has bytes.
  bridge::ExecRequest request = python(
      "raw(b'\\xff' * 100000)\nh, _ = take()\n"
      "for byte in b'\\x1eabc\\x1eabcdef\\x1e':\n  raw(bytes([byte])); time.sleep(0.002)\n"
      "give({'id': h['id'], 'got': 'first'})\n" +
      std::string(kEcho));
  request.with_stdin = true;
  auto outcome = h.run(h.client.session_exec(*session, std::move(request)));
  ASSERT_TRUE(outcome && std::holds_alternative<bridge::ExecStarted>(*outcome));
  spec.has_protocol = true;
  WorkerOptions options;
  options.mark =
      "\x1e"
      "abcdef\x1e";
  worker = Worker::over(Program::adopt(h.client, spec, *session, std::get<bridge::ExecStarted>(std::move(*outcome))), options);
  for (const char* expected : {"first", "second"}) {
    auto reply = call(expected);
    ASSERT_TRUE(reply) << reply.error().text();
    EXPECT_EQ(reply->head["got"], expected);
  }
}

TEST_F(WorkerTest, ACallFailsWithExitCodeAndLastWordsWhenTheProgramDies) {
  start("take()\nsys.stderr.write('first\\nno memory\\n'); sys.stderr.flush(); os._exit(3)\n");
  auto reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().what, "file worker ended with exit code 3: 'no memory'");
  auto next = call();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().what, reply.error().what);
}

TEST_F(WorkerTest, ARepliedCallSucceedsThoughTheProgramEndsAtOnce) {
  start("h, _ = take(); give({'id': h['id'], 'got': 'last'}); os._exit(0)\n");
  auto reply = call();
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->head["got"], "last");
  await_end();
  EXPECT_TRUE(h.eventually([&] { return h.fake.sessions_destroyed == 1; }));
}

TEST_F(WorkerTest, TheOwnerIsToldOfTheEndOnce) {
  int told = 0;
  WorkerOptions options;
  options.on_end = [&told](const Error&) { ++told; };
  start("os._exit(1)\n", options);
  await_end();
  h.idle(milliseconds(300));
  EXPECT_EQ(told, 1);
}

class WorkerNonsense : public WorkerTest, public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(WorkerNonsense, EndsTheWorkerAndItsSession) {
  start(std::string("h, _ = take()\n") + GetParam().first + "\ntime.sleep(100)\n");
  auto reply = call();
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().what.find(GetParam().second), std::string::npos) << reply.error().what;
  EXPECT_FALSE(worker->alive());
  EXPECT_TRUE(h.eventually([&] { return h.fake.sessions_destroyed == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Kinds, WorkerNonsense,
                         ::testing::Values(std::pair("raw(b'hello, world, this is no frame')", "a head of 1819043176 bytes"),
                                           std::pair("raw(struct.pack('<I', 0))", "a head of 0 bytes"),
                                           std::pair("raw(struct.pack('<I', 4) + b'{{{{')", "not JSON"),
                                           std::pair("raw(struct.pack('<I', 2) + b'[]')", "not an object"),
                                           std::pair("give({'id': 77})", "no request"), std::pair("give({'id': '1'})", "id"),
                                           std::pair("give({'id': h['id'], 'bytes': -1})", "bytes"),
                                           std::pair("give({'id': h['id'], 'bytes': 1 << 40})", "bytes")));

TEST_F(WorkerTest, MoreOutputThanAFrameMayHaveIsTheReasonOfTheEnd) {
  start("h, _ = take()\ngive({'id': h['id'], 'bytes': 1 << 40})\ntime.sleep(100)\n");
  ASSERT_FALSE(call());
  ASSERT_TRUE(worker->why_ended());
  EXPECT_EQ(worker->why_ended()->reason, "output");
}

TEST_F(WorkerTest, AProgramThatDiesHasItsExitAsTheReason) {
  start("take()\nos._exit(3)\n");
  ASSERT_FALSE(call());
  ASSERT_TRUE(worker->why_ended());
  EXPECT_EQ(worker->why_ended()->reason, "exit");
  EXPECT_EQ(worker->why_ended()->figure, 3);
}

TEST_F(WorkerTest, ATimedOutCallIsCancelledAndItsLateReplyDropped) {
  start(
      "h, _ = take(); c, _ = take()\ngive({'id': h['id'], 'got': 'late'})\n"
      "h, _ = take(); give({'id': h['id'], 'got': c.get('cancel')})\ntake()\n");
  auto late = call(nullptr, "", milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  auto next = call();
  ASSERT_TRUE(next) << next.error().text();
  EXPECT_EQ(next->head["got"], 1);  // the id of the first
  EXPECT_EQ(worker->calls(), 0U);
}

TEST_F(WorkerTest, AProgramThatNeverAnswersGetsNoMoreCallsThanItsLimit) {
  spec.limits.most_calls = 3;
  start("time.sleep(100)\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(nullptr, "", milliseconds(20)).error().code, Code::timeout);
  EXPECT_EQ(call(nullptr, "", milliseconds(20)).error().code, Code::limit);
}

TEST_F(WorkerTest, AProgramThatDoesNotReadIsNotFedWithoutBound) {
  spec.limits.most_waiting_bytes = 350'000;
  start("time.sleep(100)\n");
  const std::string body(200'000, 'x');
  EXPECT_EQ(call(nullptr, body, milliseconds(20)).error().code, Code::timeout);
  EXPECT_EQ(call(nullptr, body, milliseconds(20)).error().code, Code::timeout);
  EXPECT_EQ(call(nullptr, body, milliseconds(20)).error().code, Code::limit);
  EXPECT_FALSE(Worker::tell(worker, json::Value::object(), body));
}

TEST_F(WorkerTest, AFloodOfEventsStarvesNobody) {
  std::size_t events = 0;
  WorkerOptions options;
  options.on_event = [&events](frames::Frame) { ++events; };
  start("h, _ = take()\nwhile True: give({'event': 'x'}, b'y' * 100000)\n", options);
  EXPECT_EQ(call(nullptr, "", milliseconds(50)).error().code, Code::timeout);
  (void)h.eventually([&] { return events > 10; });
  const json::Value other = h.post("/v1/bash/exec", {{"command", "echo served"}});
  EXPECT_EQ(other["data"]["stdout"], "served\n");
  EXPECT_GT(events, 10U);
}

TEST_F(WorkerTest, HeldOutputIsReadLater) {
  std::size_t events = 0;
  WorkerOptions options;
  options.on_event = [&events](frames::Frame) { ++events; };
  start("h, _ = take()\nfor i in range(100): give({'event': i}, b'y' * 10000)\ngive({'id': h['id']})\ntake()\n", options);
  worker->hold_output(true);
  EXPECT_EQ(call(nullptr, "", milliseconds(200)).error().code, Code::timeout);
  EXPECT_EQ(events, 0U);
  worker->hold_output(false);
  (void)h.eventually([&] { return worker->calls() == 0; });
  EXPECT_EQ(events, 100U);
}

TEST_F(WorkerTest, Flaw15AFrameThatDoesNotEndTakesNoMoreThanItsWorkspaceHas) {
  const auto all = std::make_shared<http::Budget>(2'000'000);
  WorkerOptions options;
  options.budget = std::make_shared<services::OutputBudget>(1'500'000, all);
  spec.limits.most_turns_without_room = 3;
  start(
      "take()\ntext = json.dumps({'id': 1, 'bytes': 4000000}).encode()\n"
      "raw(struct.pack('<I', len(text)) + text + b'x' * 3999999)\ntime.sleep(60)\n",
      std::move(options));
  auto reply = call();
  ASSERT_FALSE(reply);
  EXPECT_TRUE(reply.error().what.contains("no room")) << reply.error().text();
  EXPECT_EQ(worker->why_ended()->reason, bridge::end_of("output").reason);
  worker.reset();
  (void)h.eventually([&] { return all->used() == 0; });
  EXPECT_EQ(all->used(), 0u);
}

TEST_F(WorkerTest, Flaw15AFrameWaitsForRoomAndComes) {
  const auto all = std::make_shared<http::Budget>(2'000'000);
  http::Budget::Share others({all->open(2'000'000)});
  ASSERT_EQ(others.resize(1'900'000), http::Room::granted);
  WorkerOptions options;
  options.budget = std::make_shared<services::OutputBudget>(1'500'000, all);
  start("h, _ = take()\ngive({'id': h['id']}, b'x' * 400000)\nwhile True: take()\n", std::move(options));
  ASSERT_FALSE(call(1, "", milliseconds(300))) << "there is no room for its reply";
  EXPECT_TRUE(worker->alive());
  ASSERT_EQ(worker->calls(), 1u);
  others.release();
  (void)h.eventually([&] { return worker->calls() == 0; });
  EXPECT_TRUE(worker->alive());
  EXPECT_EQ(worker->calls(), 0u) << "the reply has come";
  EXPECT_EQ(all->used(), 0u);
}

TEST_F(WorkerTest, Flaw15RequestsThatAreNotReadAreCounted) {
  const auto all = std::make_shared<http::Budget>(2'000'000);
  WorkerOptions options;
  options.budget = std::make_shared<services::OutputBudget>(500'000, all);
  start("time.sleep(60)", std::move(options));
  auto reply = call(1, std::string(600'000, 'x'), milliseconds(300));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::limit) << reply.error().text();
  EXPECT_TRUE(worker->alive());
}

TEST_F(WorkerTest, CloseEndsProgramSessionAndCalls) {
  start("time.sleep(100)\n");
  auto closed = h.run(Worker::close(worker, "idle"));
  EXPECT_TRUE(closed);
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
  EXPECT_EQ(call().error().what, "file worker was closed: idle");
}

TEST_F(WorkerTest, AProgramThatDoesNotExistLeavesNoSession) {
  spec.command.argv = {"/nonexistent/program"};
  auto started = h.run(Worker::start(h.client, spec, {}));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::not_found);
  EXPECT_EQ(h.fake.sessions_destroyed, h.fake.sessions_created);
}

}  // namespace
}  // namespace caisson::testing
