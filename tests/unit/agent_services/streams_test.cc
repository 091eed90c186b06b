// Event streams of exec and view, and the terminal WebSocket, with the connection played by the test.
#include "agent/routes/shell_ws.h"
#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

class Recorder final : public http::StreamWriter {
 public:
  task<void> start(std::string) override { co_return Status{}; }
  task<void> write(std::string bytes) override {
    text += bytes;
    if (broken) co_return fail(Code::io, "the client is gone");
    co_return Status{};
  }
  std::string text;
  bool broken = false;
};

task<http::Response> stream(Harness& h, std::string path, json::Value body, Recorder& recorder) {
  http::Request request;
  request.headers = {{"accept", "text/event-stream"}};
  request.body = json::dump(body);
  for (const routes::Route& route : routes::shell_routes())
    if (route.path == path) {
      routes::Call call{h.services, std::move(request), route, &recorder};
      co_return co_await route.endpoint.handler(std::move(call));
    }
  co_return fail(Code::not_found, "no route");
}

TEST(ShellEvents, ExecSendsOutputThenDone) {
  Harness h;
  Recorder recorder;
  auto r = h.run(stream(h, "/v1/shell/exec", {{"command", "echo one; sleep 0.2; echo two; exit 3"}}, recorder));
  ASSERT_TRUE(r && r->sent) << r.error().text();
  EXPECT_NE(recorder.text.find("event: output\ndata: {\"data\":\"one\\r\\n"), std::string::npos) << recorder.text;
  const std::size_t done = recorder.text.find("event: done\ndata: {");
  ASSERT_NE(done, std::string::npos);
  const std::size_t start = done + 18;
  const auto data = json::parse(recorder.text.substr(start, recorder.text.find('\n', start) - start));
  ASSERT_TRUE(data);
  EXPECT_EQ((*data)["exit_code"], 3);
  EXPECT_EQ((*data)["output"], "one\ntwo");
}

TEST(ShellEvents, AClientThatLeavesDoesNotEndTheCommand) {
  Harness h;
  Recorder recorder;
  recorder.broken = true;
  (void)h.post("/v1/shell/sessions/create", {{"id", "s"}});
  EXPECT_FALSE(h.run(stream(h, "/v1/shell/exec", {{"id", "s"}, {"command", "echo a; sleep 0.3; echo b > done"}}, recorder)));
  EXPECT_EQ(h.post("/v1/shell/exec", {{"id", "s"}, {"command", "cat done"}})["data"]["output"], "b");
}

TEST(ShellEvents, ViewSendsTheScreenAndDoneAtOnceWhenIdle) {
  Harness h;
  Recorder recorder;
  (void)h.post("/v1/shell/sessions/create", {{"id", "s"}});
  (void)h.post("/v1/shell/exec", {{"id", "s"}, {"command", "echo seen"}});
  auto r = h.run(stream(h, "/v1/shell/view", {{"id", "s"}}, recorder));
  ASSERT_TRUE(r && r->sent);
  EXPECT_NE(recorder.text.find("event: status\ndata: {\"status\":\"completed\"}"), std::string::npos) << recorder.text;
  EXPECT_NE(recorder.text.find("seen"), std::string::npos);
  EXPECT_NE(recorder.text.find("event: done"), std::string::npos);
}

// The client: its messages are given beforehand, one after each condition on what it has received.
class Client final : public http::WebSocket::Transport {
 public:
  struct Step {
    std::string after;  // send once this text has come
    std::string text;   // "": close
  };
  Client(asio::any_io_executor executor, std::vector<Step> steps) : changed_(std::move(executor)), steps_(std::move(steps)) {}
  task<std::optional<std::string>> receive() override {
    while (next_ < steps_.size()) {
      const Step& step = steps_[next_];
      const auto deadline = bridge::deadline_after(50);
      while (output.find(step.after) == std::string::npos)
        if (!co_await changed_.wait_until(deadline)) co_return fail(Code::timeout, "never came: " + step.after);
      ++next_;
      if (step.text.empty()) break;
      std::optional<std::string> text = step.text;
      co_return text;
    }
    co_return std::nullopt;
  }
  task<void> send(std::string text) override {
    const auto body = json::parse(text, {.max_bytes = 1 << 20});
    EXPECT_TRUE(body) << text;
    types += (*body)["type"].get<std::string>() + " ";
    if (body->contains("data")) output += (*body)["data"].get<std::string>();
    changed_.notify_all();
    co_return Status{};
  }
  task<std::optional<http::WebSocketMessage>> receive_message() override { co_return fail(Code::internal, "not of this test"); }
  task<void> send_message(http::WebSocketMessage) override { co_return fail(Code::internal, "not of this test"); }
  task<std::optional<http::WebSocketPiece>> receive_piece(std::uint64_t) override {
    co_return fail(Code::internal, "not of this test");
  }
  task<void> send_piece(http::WebSocketPiece) override { co_return fail(Code::internal, "not of this test"); }
  task<void> close(std::uint16_t code, std::string) override {
    close_code = code;
    co_return Status{};
  }
  void abort() override {}
  std::string types, output;
  int close_code = 0;

 private:
  bridge::Notifier changed_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
};

std::shared_ptr<Client> talk(Harness& h, std::vector<Client::Step> steps, http::Pairs query = {}) {
  auto client = std::make_shared<Client>(h.io.get_executor(), std::move(steps));
  http::Request request;
  request.query = std::move(query);
  static constexpr routes::Route kNone{};
  routes::Call call{h.services, std::move(request), kNone, nullptr};
  auto over = h.run(routes::shell_ws(std::move(call), http::WebSocket(client)));
  EXPECT_TRUE(over) << over.error().text();
  return client;
}

std::string input(std::string data) { return json::dump({{"type", "input"}, {"data", std::move(data)}}); }

TEST(ShellWebSocket, GreetsEchoesAndRunsWhatIsTyped) {
  Harness h;
  const auto client = talk(h, {{"Terminal ready", R"({"type":"resize","data":{"cols":100,"rows":30}})"},
                               {"$ ", R"({"type":"pong","timestamp":1})"},
                               {"$ ", input("echo $((40+2)) $(stty size)\r")},
                               {"42 30 100", ""}});
  EXPECT_TRUE(client->types.starts_with("session_id ready output ")) << client->types;
  EXPECT_EQ(h.get("/v1/shell/sessions/stats")["data"]["total_sessions"], 1) << "leaving does not end the session";
}

TEST(ShellWebSocket, ExitEndsTheConversation) {
  Harness h;
  EXPECT_EQ(talk(h, {{"$ ", input("exit\r")}, {"never", ""}})->close_code, 1000);
}

TEST(ShellWebSocket, JoinsASessionAndSeesItsScreen) {
  Harness h;
  (void)h.post("/v1/shell/sessions/create", {{"id", "s"}});
  (void)h.post("/v1/shell/exec", {{"id", "s"}, {"command", "A=joined; echo before"}});
  const auto client = talk(h, {{"before", input("echo $A-again\r")}, {"joined-again", ""}}, {{"session_id", "s"}});
  EXPECT_NE(client->output.find("A=joined; echo before"), std::string::npos);
  EXPECT_EQ(h.post("/v1/shell/exec", {{"id", "s"}, {"command", "echo still"}})["data"]["output"], "still");
}

TEST(ShellWebSocket, ExecWorksInAPersonsTerminal) {
  Harness h;
  const auto client = talk(h, {{"$ ", ""}});
  const std::string id = h.workspace->shell.sessions().front()->id;
  EXPECT_EQ(h.post("/v1/shell/exec", {{"id", id}, {"command", "echo 'from the\tAPI'; exit 0"}})["data"]["output"],
            "from the\tAPI");
  EXPECT_EQ(h.post("/v1/shell/exec", {{"id", id}, {"command", "echo again"}})["data"]["output"], "again");
}

TEST(ShellWebSocket, UnknownSessionIsAnError) {
  Harness h;
  const auto client = talk(h, {}, {{"session_id", "nope"}});
  EXPECT_EQ(client->types, "error ");
  EXPECT_EQ(client->close_code, 1008);
}

}  // namespace
}  // namespace caisson::testing
