// Supervisor against real programs: ones that serve, and ones that do not start, are never ready, die, flood, or will not end.
#include "agent/services/program/supervisor.h"

#include "agent/services/program/worker.h"
#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

using services::Program;
using services::ProgramSpec;
using services::Supervisor;
using services::Worker;
using State = Supervisor::State;
using std::chrono::milliseconds;
using std::chrono::seconds;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() { spec.limits.ready_within = milliseconds(20'000); }
  ~SupervisorTest() override {
    supervisor.reset();
    worker.reset();
  }
  void shell(std::string script) { spec.command.argv = {"/bin/sh", "-c", std::move(script)}; }
  void supervise() { supervisor.emplace(h.client, spec); }
  // A program that is ready at once and does `action`, in the shell's words, when it is asked to end.
  void traps(const std::string& action, milliseconds stop_within) {
    shell("trap " + action + " TERM; echo listening; while :; do sleep 0.05; done");
    spec.ready.text = "listening";
    spec.stop_signal = "SIGTERM";
    spec.limits.stop_within = stop_within;
    supervise();
  }
  Result<Program::Pointer> get() { return h.run(supervisor->program()); }
  template <class Condition>
  void await(Condition condition) {
    ASSERT_TRUE(h.eventually(condition));
  }
  // A request without an answer, for the moment at which the test looks.
  struct Waiting {
    bool over = false;
    std::optional<Error> error;
  };
  static task<void> wait_for(Supervisor& supervisor, std::shared_ptr<Waiting> waiting) {
    auto program = co_await supervisor.program();
    if (!program) waiting->error = program.error();
    waiting->over = true;
    co_return Status{};
  }
  std::shared_ptr<Waiting> request() {
    auto waiting = std::make_shared<Waiting>();
    spawn(h.io.get_executor(), "test", wait_for(*supervisor, waiting));
    return waiting;
  }

  Harness h;
  ProgramSpec spec{.name = "server", .domain = "file", .label = "test", .workspace = "default"};
  Worker::Pointer worker;
  std::optional<Supervisor> supervisor;
};

TEST_F(SupervisorTest, OneStartServesAllWhoWaitForIt) {
  shell("sleep 2; echo 'listening on port 5'; exec sleep 60");
  spec.ready.text = "listening";
  supervise();
  EXPECT_EQ(supervisor->health().state, State::stopped);
  const auto one = request(), other = request();
  h.idle(milliseconds(50));
  EXPECT_EQ(supervisor->health().state, State::starting);
  EXPECT_FALSE(one->over || other->over);
  await([&] { return one->over && other->over; });
  EXPECT_FALSE(one->error || other->error);
  EXPECT_EQ(supervisor->health().state, State::ready);
  EXPECT_EQ(h.fake.sessions_created, 1);
}

TEST_F(SupervisorTest, TheTextOfItsReadinessMayComeInPiecesAndOnStderr) {
  shell("printf 'x: liste' >&2; sleep 0.1; printf 'ning' >&2; exec sleep 60");
  spec.ready.text = "listening";
  supervise();
  EXPECT_TRUE(get());
}

task<void> exists(std::string path) {
  if (!std::filesystem::exists(path)) co_return fail(Code::not_found, "no " + path);
  co_return Status{};
}

TEST_F(SupervisorTest, AProbeIsRepeatedUntilItSucceeds) {
  const std::string path = h.home() + "/socket";
  shell("sleep 0.2; touch " + path + "; exec sleep 60");
  spec.ready.ask = services::poll_until([path] { return exists(path); });
  supervise();
  ASSERT_TRUE(get());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(SupervisorTest, ASessionThatIsRefusedIsNoFailureOfTheProgram) {
  shell("exec sleep 60");
  supervise();
  h.fake.refuse_creates = 1;
  auto refused = get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::limit);
  EXPECT_EQ(supervisor->health().failures, 0U);
  EXPECT_TRUE(get());
}

TEST_F(SupervisorTest, AnEndForAnothersReasonIsNoFailureAndNobodyWaits) {
  shell("echo listening; sleep 0.3; exit 6");
  spec.ready.text = "listening";
  spec.limits.blameless_exit = 6;
  spec.limits.first_pause = seconds(3600);
  spec.limits.longest_pause = seconds(3600);
  spec.limits.most_failures = 2;
  supervise();
  for (int i = 0; i < 4; ++i) {
    const auto program = get();
    ASSERT_TRUE(program);
    await([&] { return !(*program)->alive(); });
    EXPECT_EQ(supervisor->health().failures, 0U);
  }
}

TEST_F(SupervisorTest, AProgramThatDoesNotExistLeavesNoSession) {
  spec.command.argv = {"/nonexistent/program"};
  supervise();
  auto refused = get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::not_found);
  EXPECT_EQ(h.fake.sessions_destroyed, h.fake.sessions_created);
}

TEST_F(SupervisorTest, OneThatIsNeverReadyIsEndedAtItsDeadlineAndSaysItsLastWords) {
  shell("echo 'no display' >&2; exec sleep 60");
  spec.ready.text = "listening";
  spec.limits.ready_within = milliseconds(3000);  // in which it says them
  supervise();
  auto late = get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_EQ(late.error().what, "server was not ready after 3000 ms: 'no display'");
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
  EXPECT_EQ(supervisor->health().failures, 1U);
}

task<void> never() { co_return fail(Code::io, "connection refused"); }

TEST_F(SupervisorTest, AProbeThatNeverSucceedsEndsWithTheDeadline) {
  shell("exec sleep 60");
  spec.ready.ask = services::poll_until([] { return never(); });
  spec.limits.ready_within = milliseconds(2000);  // in which it is asked once
  supervise();
  auto late = get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().what, "server was not ready: connection refused");
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
}

TEST_F(SupervisorTest, OneThatDiesWhileItStartsFailsAllWhoWait) {
  shell("sleep 0.1; echo 'no memory' >&2; exit 3");
  spec.ready.text = "listening";
  supervise();
  const auto one = request(), other = request();
  await([&] { return one->over && other->over; });
  ASSERT_TRUE(one->error && other->error);
  EXPECT_EQ(one->error->what, "server ended with exit code 3: 'no memory'");
  EXPECT_EQ(other->error->what, one->error->what);
  EXPECT_EQ(h.fake.sessions_created, 1);
}

TEST_F(SupervisorTest, OneThatFailsAgainAndAgainIsTriedEverLessOften) {
  shell("exit 1");
  spec.ready.text = "listening";
  spec.limits.most_failures = 3;
  spec.limits.first_pause = milliseconds(600);
  spec.limits.longest_pause = seconds(60);
  supervise();
  const auto failed = [&] {
    const auto begin = bridge::Clock::now();
    EXPECT_FALSE(get());
    return bridge::Clock::now() - begin;
  };
  failed();
  failed();  // at once
  EXPECT_EQ(supervisor->health().state, State::failing);
  EXPECT_GE(failed(), milliseconds(200)) << "after a pause";
  supervisor->spec().limits.first_pause = seconds(30);
  supervisor->spec().limits.most_failures = 4;
  failed();
  const auto refused = get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_EQ(refused.error().what, "server failed 4 times in a row; try again later: server ended with exit code 1");
  EXPECT_EQ(h.fake.sessions_created, 4) << "a refused request starts nothing";
  supervisor->try_again();
  EXPECT_EQ(supervisor->health().failures, 0U);
  failed();
  EXPECT_EQ(h.fake.sessions_created, 5) << "at once";
}

TEST_F(SupervisorTest, ALongRunEndsARowOfFailures) {
  shell("echo listening; exec sleep 60");
  spec.ready.text = "listening";
  spec.limits.settled_after = seconds(0);
  supervise();
  for (int i = 0; i < 4; ++i) {
    auto program = get();
    ASSERT_TRUE(program);
    ::kill(static_cast<pid_t>((*program)->pid()), SIGKILL);
    await([&] { return !(*program)->alive(); });
    EXPECT_EQ(supervisor->health().failures, 1U);
  }
  EXPECT_EQ(supervisor->health().starts, 4U);
}

TEST_F(SupervisorTest, OneThatMayNotBeRestartedSaysWhyItEnded) {
  shell("exec sleep 60");
  spec.limits.restarts = false;
  supervise();
  auto program = get();
  ASSERT_TRUE(program);
  ::kill(static_cast<pid_t>((*program)->pid()), SIGTERM);
  await([&] { return !(*program)->alive(); });
  auto again = get();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what, "server was ended by SIGTERM");
  EXPECT_EQ(h.fake.sessions_created, 1);
}

TEST_F(SupervisorTest, ARequestUnderWayFailsWithTheProgramAndTheNextIsServed) {
  spec.command.argv = {"python3", "-c",
                       "import os, struct, sys\nsize = struct.unpack('<I', os.read(0, 4))[0]\nos.read(0, size)\n"
                       "sys.stderr.write('segfault\\n'); sys.stderr.flush(); os._exit(7)\n"};
  spec.has_protocol = true;
  spec.opened = [this](Program::Pointer program) { worker = Worker::over(std::move(program), {}); };
  supervise();
  ASSERT_TRUE(get());
  json::Value head = json::Value::object();
  auto reply = h.run(Worker::call(worker, std::move(head), "", bridge::deadline_after(20)));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().what, "server ended with exit code 7: 'segfault'");
  EXPECT_EQ(supervisor->health().last_error->what, reply.error().what);
  const Worker::Pointer first = worker;
  ASSERT_TRUE(get());
  EXPECT_NE(worker, first);
  EXPECT_TRUE(worker->alive());
}

TEST_F(SupervisorTest, AFloodOnStderrKeepsItsLastWordsAndStarvesNobody) {
  shell("head -c 40000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'the last line' >&2; exit 1");
  spec.ready.text = "listening";
  spec.limits.tail_bytes = 1000;
  supervise();
  const auto flooded = request();
  const json::Value other = h.post("/v1/bash/exec", {{"command", "echo served"}});
  EXPECT_EQ(other["data"]["stdout"], "served\n");
  await([&] { return flooded->over; });
  ASSERT_TRUE(flooded->error);
  EXPECT_EQ(flooded->error->what, "server ended with exit code 1: 'the last line'");
}

TEST_F(SupervisorTest, OneThatIsStoppedWhileItStartsIsEnded) {
  shell("exec sleep 60");
  spec.ready.text = "listening";
  supervise();
  const auto waiting = request();
  await([&] { return h.fake.sessions_created == 1; });
  h.idle(milliseconds(100));
  EXPECT_TRUE(h.run(supervisor->stop("not wanted")));
  await([&] { return waiting->over; });
  ASSERT_TRUE(waiting->error);
  EXPECT_EQ(waiting->error->what, "server was stopped while it started: not wanted");
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
  EXPECT_EQ(supervisor->health().state, State::stopped);
  EXPECT_EQ(supervisor->health().failures, 0U);
}

TEST_F(SupervisorTest, OneThatIsForgottenBeforeItsSessionIsThereIsEnded) {
  shell("exec sleep 60");
  supervise();
  const auto waiting = request();
  h.io.restart();
  while (supervisor->health().state != State::starting) h.io.poll_one();
  supervisor->forget("the workspace has ended");
  await([&] { return waiting->over; });
  ASSERT_TRUE(waiting->error);
  EXPECT_EQ(waiting->error->what, "server was stopped while it started: the workspace has ended");
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
}

TEST_F(SupervisorTest, ItIsAskedToEndBeforeItsSessionIs) {
  const std::string path = h.home() + "/ended";
  traps("'touch " + path + "; exit 0'", seconds(10));
  auto program = get();
  ASSERT_TRUE(program);
  EXPECT_TRUE(h.run(supervisor->stop("shutdown")));
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ((*program)->end_error()->what, "server was closed: shutdown");
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
}

TEST_F(SupervisorTest, OneThatDoesNotEndWhenAskedIsKilled) {
  traps("''", milliseconds(200));
  auto program = get();
  ASSERT_TRUE(program);
  EXPECT_TRUE(h.run(supervisor->stop("shutdown")));
  EXPECT_TRUE((*program)->exec()->exit);
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
}

TEST_F(SupervisorTest, AProgramThatServesASocketMayCloseItsStdout) {
  shell("echo listening; exec >&- 2>&-; exec sleep 60");
  spec.ready.text = "listening";
  supervise();
  auto program = get();
  ASSERT_TRUE(program);
  h.idle(milliseconds(300));
  EXPECT_TRUE((*program)->alive());
}

TEST_F(SupervisorTest, OneThatWasLeftIsTakenUpWithoutAStart) {
  auto session = h.run(h.client.session_create("file", "test", "default"));
  ASSERT_TRUE(session);
  bridge::ExecRequest request;
  request.argv = {"sleep", "60"};
  auto outcome = h.run(h.client.session_exec(*session, std::move(request)));
  ASSERT_TRUE(outcome && std::holds_alternative<bridge::ExecStarted>(*outcome));
  supervise();
  const Program::Pointer adopted = supervisor->adopt(*session, std::get<bridge::ExecStarted>(std::move(*outcome)));
  auto program = get();
  ASSERT_TRUE(program);
  EXPECT_EQ(*program, adopted);
  EXPECT_EQ(h.fake.sessions_created, 1);
}

TEST_F(SupervisorTest, AnEndThatWasAskedForIsNoFailure) {
  shell("exec sleep 60");
  supervise();
  ASSERT_TRUE(get());
  EXPECT_TRUE(h.run(supervisor->stop("not wanted")));
  EXPECT_EQ(supervisor->health().failures, 0U);
  EXPECT_TRUE(get());
  EXPECT_EQ(h.fake.sessions_created, 2);
}

}  // namespace
}  // namespace caisson::testing
