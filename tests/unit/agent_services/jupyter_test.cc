// JupyterService against real kernels, started unconfined by the fake launcher.
#include "agent/services/notebook/jupyter_service.h"

#include <cstdlib>

#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

using services::JupyterService;
using services::Turns;

TEST(Turns, AreTakenInTheOrderInWhichTheyWereAsked) {
  asio::io_context io(1);
  Turns turns(io.get_executor());
  auto first = std::make_unique<Turns::Place>(turns);
  auto second = std::make_unique<Turns::Place>(turns);
  auto third = std::make_unique<Turns::Place>(turns);
  EXPECT_TRUE(first->first());
  second.reset();  // left before its turn
  EXPECT_FALSE(third->first());
  first.reset();
  const Turns::Place fourth(turns);
  EXPECT_TRUE(third->first());
  EXPECT_FALSE(fourth.first());
}

class JupyterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static const bool installed = std::system("/usr/bin/python3 -I -c 'import ipykernel, jupyter_client' 2>&-") == 0;
    if (!installed) GTEST_SKIP() << "python3-ipykernel and python3-jupyter-client are not installed (scripts/setup --test)";
  }
  void TearDown() override {
    if (!service) return;
    for (const auto& s : service->sessions()) (void)h.run(service->close(s, "the test is over"));
    service.reset();
  }
  JupyterService& with(services::Config config) {
    service = std::make_unique<JupyterService>(h.client, std::move(config));
    return *service;
  }
  static services::Config no_pool() {
    services::Config config;
    config.prepared_kernels = 0;
    return config;
  }
  Result<JupyterService::Answer> run(std::string id, std::string code, std::string kernel = "") {
    JupyterService::Request request{.code = std::move(code)};
    request.target = {std::move(id), std::move(kernel), ""};
    return h.run(service->execute(std::move(request)));
  }
  Harness h;
  std::unique_ptr<JupyterService> service;
};

TEST_F(JupyterTest, ASessionKeepsItsVariablesAndItsKernel) {
  with(no_pool());
  ASSERT_TRUE(run("s", "x = 6"));
  auto answer = run("s", "x * 7");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->result.status, "ok");
  EXPECT_EQ((*answer->result.outputs.at(0).data)["text/plain"], "42");
  EXPECT_EQ(h.fake.sessions_created, 2);  // asked for kernels, and one kernel
}

TEST_F(JupyterTest, AKernelThatEndsInACellIsAnAnswerAndItsSessionIsDestroyed) {
  with(no_pool());
  auto answer = run("s", "import os; os._exit(3)");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->result.exit_code, 3);
  EXPECT_EQ(answer->result.outputs.back().ename, "DeadKernelError");
  EXPECT_EQ(service->find("s"), nullptr);
  (void)h.eventually([&] { return h.fake.sessions_destroyed >= 2; });
  EXPECT_EQ(h.fake.sessions_destroyed, 2);
}

TEST_F(JupyterTest, AKernelThatEndsBetweenTwoCellsTakesItsSessionAlong) {
  with(no_pool());
  ASSERT_TRUE(run("s", "import os, threading; threading.Timer(0.3, os._exit, [5]).start()"));
  (void)h.eventually([&] { return service->find("s") == nullptr; });
  EXPECT_EQ(service->find("s"), nullptr);
}

TEST_F(JupyterTest, AnUnknownKernelIsRefusedWithTheNamesOfThoseThatAreThere) {
  with(no_pool());
  auto answer = run("s", "1", "python2.7");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().what.contains("'python2.7' is not installed; available: python3, python3.")) << answer.error().what;
  EXPECT_EQ(service->find("s"), nullptr);
}

TEST_F(JupyterTest, ADefaultVersionThatIsNotThereLeavesTheOneThatIs) {
  services::Config config = no_pool();
  config.python_version = "python3.99";
  with(config);
  auto answer = run("s", "1");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->kernel_name, "python3");
}

TEST_F(JupyterTest, AClientThatHasLeftBeforeItsTurnRunsNothing) {
  with(no_pool());
  ASSERT_TRUE(run("s", "x = 1"));
  JupyterService::Request request{.code = "x = 2"};
  request.target.session_id = "s";
  request.gone = [] { return true; };
  EXPECT_FALSE(h.run(service->execute(std::move(request))));
  EXPECT_EQ((*run("s", "x")->result.outputs.at(0).data)["text/plain"], "1");
}

TEST_F(JupyterTest, OfSessionsThatNobodyNamedThereAreFew) {
  services::Config config = no_pool();
  config.max_implicit_kernels = 1;
  with(config);
  const auto first = run("", "1"), second = run("", "1");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(service->find(first->session_id), nullptr);
  ASSERT_TRUE(run(second->session_id, "1"));  // named: it is kept now
  ASSERT_TRUE(run("", "1"));
  EXPECT_NE(service->find(second->session_id), nullptr);
}

TEST_F(JupyterTest, APreparedKernelIsTakenAndReplaced) {
  with({});
  ASSERT_TRUE(h.run(service->prepare()));
  (void)h.eventually([&] { return h.fake.sessions_created >= 2; });
  ASSERT_TRUE(run("a", "1"));
  EXPECT_EQ(h.fake.sessions_created, 2);  // asked for kernels, and the prepared one
  (void)h.eventually([&] { return h.fake.sessions_created >= 3; });
  EXPECT_EQ(h.fake.sessions_created, 3);
}

TEST_F(JupyterTest, Flaw01WhichKernelsThereAreIsAskedAnewForTheNextWorkspaceAndAfterAReload) {
  with(no_pool());
  ASSERT_TRUE(h.run(service->catalog()));
  ASSERT_TRUE(h.run(service->catalog()));
  EXPECT_EQ(h.fake.sessions_created, 1);
  service->serve_workspace("other", "");
  ASSERT_TRUE(h.run(service->catalog()));
  EXPECT_EQ(h.fake.sessions_created, 2);
  EXPECT_EQ(h.fake.creates().back().value("workspace", ""), "other");
  service->flush();
  ASSERT_TRUE(run("s", "1")) << "a session finds its kernel again";
  EXPECT_EQ(h.fake.sessions_created, 4);  // asked for kernels, and one kernel
}

TEST_F(JupyterTest, AFailureToAskForKernelsIsSaidAndAskedAgain) {
  with(no_pool());
  h.fake.refuse_creates = 1;
  auto answer = run("s", "1");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().what.contains("too many sessions")) << answer.error().what;
  EXPECT_TRUE(run("s", "1"));  // and asks again
}

}  // namespace
}  // namespace caisson::testing
