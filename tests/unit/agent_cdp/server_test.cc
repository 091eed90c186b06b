// The descriptors around the router: limits, slow and cut connections, holding. A browser that is played by the test answers.
#include "agent/cdp/server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"

namespace caisson::cdp {
namespace {

// Gives a session to who attaches, and keeps the rest.
class FakeBrowser {
 public:
  FakeBrowser(Loop& loop, Fd in, Fd out) : loop_(loop), in_(std::move(in)), out_(std::move(out)) {
    for (const Fd* fd : {&in_, &out_}) EXPECT_TRUE(sys::set_nonblocking(fd->get(), true));
    EXPECT_TRUE(loop_.watch(in_.get(), EPOLLIN, [this](std::uint32_t) { read(); }));
    EXPECT_TRUE(loop_.watch(out_.get(), 0, [this](std::uint32_t) { write(); }));
  }
  ~FakeBrowser() { close(); }
  void close() {
    loop_.unwatch(in_.get());
    loop_.unwatch(out_.get());
    in_.reset();
    out_.reset();
  }
  void say(std::string_view text) {
    outbox_.push(Outgoing::of(text));
    write();
  }
  void reads(bool on) { EXPECT_TRUE(loop_.rewatch(in_.get(), on ? EPOLLIN : 0)); }
  std::vector<json::Value> heard;
  std::set<std::string> sessions;
  bool answers = true;

 private:
  void read() {
    static char bytes[64 * 1024];
    const ssize_t n = ::read(in_.get(), bytes, sizeof bytes);
    if (n <= 0) return loop_.unwatch(in_.get());
    std::string_view came(bytes, static_cast<std::size_t>(n));
    while (!came.empty())
      if (records_.take(came) == Records::Got::message)
        hear(json::parse(records_.message().view(), {.max_bytes = 1 << 20}).value());
  }
  void hear(json::Value message) {
    const std::string id = message["id"].dump(), method = message["method"].get<std::string>();
    heard.push_back(message);
    if (!answers) return;
    if (method.starts_with("Target.attachTo")) {
      const std::string session = "S" + std::to_string(++last_);
      sessions.insert(session);
      return say("{\"id\":" + id + R"(,"result":{"sessionId":")" + session + "\"}}");
    }
    if (method == "Target.detachFromTarget") sessions.erase(message["params"]["sessionId"].get<std::string>());
    const std::string session = message.value("sessionId", "");
    say("{\"id\":" + id + ",\"result\":{\"value\":\"" + std::string(message.value("size", 0u), 'x') + "\"}" +
        (session.empty() ? "" : ",\"sessionId\":\"" + session + "\"") + "}");
  }
  void write() {
    const bool all = outbox_.write_to(out_.get()) == Outbox::Wrote::all;
    EXPECT_TRUE(loop_.rewatch(out_.get(), all ? 0 : EPOLLOUT));
  }

  Loop& loop_;
  Fd in_, out_;
  Records records_{1 << 20};
  Outbox outbox_;
  int last_ = 0;
};

// A client's end. It reads only when it is told to.
struct Client {
  Fd socket;
  std::string unread;
  bool ended = false;
  std::size_t searched = 0;
  void read(std::size_t most = 1 << 20) {
    std::string bytes(most, '\0');
    const ssize_t n = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) unread.append(bytes, 0, static_cast<std::size_t>(n));
    else if (n == 0 || errno != EAGAIN) ended = true;
  }
  std::optional<std::string> message() {
    read();
    const auto end = unread.find('\0', searched);
    searched = end == std::string::npos ? unread.size() : 0;
    if (end == std::string::npos) return std::nullopt;
    std::string out = unread.substr(0, end);
    unread.erase(0, end + 1);
    return out;
  }
};

class CdpServer : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    char name[] = "/tmp/caisson-cdp-XXXXXX";
    folder = ::mkdtemp(name);
    make({});
  }
  void TearDown() override {
    browser.reset();
    server.reset();
    std::filesystem::remove_all(folder);
  }
  void make(const Limits& limits) {
    browser.reset();
    server = std::make_unique<Server>(*loop, limits,
                                      Server::Events{.clients = [](std::size_t) {},
                                                     .ended = [this](ClientId, const std::string& why) { ends.push_back(why); },
                                                     .browser_closed = [this] { browser_closed = true; }});
    ASSERT_TRUE(server->listen(path()));
    auto to = sys::pipe().value(), from = sys::pipe().value();
    ASSERT_TRUE(server->connect_browser(std::move(to.second), std::move(from.first), "b1"));
    browser = std::make_unique<FakeBrowser>(*loop, std::move(to.first), std::move(from.second));
  }
  std::string path() { return folder + "/cdp.sock"; }

  [[nodiscard]] bool until(const std::function<bool()>& fact) {
    bool late = false;
    const auto timer = loop->after(120'000'000, [&] { late = true; });
    std::function<void()> tick = [&] { ticker = loop->after(1'000, tick); };  // facts at a client's end wake no watch
    tick();
    EXPECT_TRUE(loop->run([&] { return late || fact(); }));
    loop->cancel(timer);
    loop->cancel(ticker);
    return !late;
  }
  void turn() {
    int left = 2;
    EXPECT_TRUE(until([&] { return --left < 0; }));
  }
  Client raw() {
    Client out{Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), "", false, 0};
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path().copy(address.sun_path, path().size());
    EXPECT_EQ(::connect(out.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return out;
  }
  void send(Client& client, std::string_view text, bool nul = true) {
    std::string bytes(text);
    if (nul) bytes.push_back('\0');
    std::string_view left = bytes;
    ASSERT_TRUE(until([&] {
      const ssize_t n = ::send(client.socket.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) return true;
      left.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
      return left.empty();
    }));
  }
  std::string receive(Client& client) {
    std::optional<std::string> message;
    EXPECT_TRUE(until([&] { return (message = client.message()).has_value() || client.ended; }));
    return message.value_or("ended");
  }
  Client connect(const std::string& hello = R"({"hello":"browser"})") {
    Client out = raw();
    send(out, hello);
    EXPECT_TRUE(receive(out).starts_with("{\"browser\":\"b1\",\"client\":"));
    return out;
  }
  std::string ask(Client& client, const std::string& text) {
    send(client, text);
    return receive(client);
  }
  // Afterwards nothing of anybody's is left.
  void expect_clean() {
    EXPECT_TRUE(until([&] { return server->clients() == 0 && browser->sessions.empty() && server->router().unanswered() == 0; }));
    EXPECT_EQ(server->router().sessions(), 0u);
  }

  std::unique_ptr<Loop> loop = Loop::create({}).value();
  std::string folder;
  std::unique_ptr<Server> server;
  std::unique_ptr<FakeBrowser> browser;
  std::vector<std::string> ends;
  bool browser_closed = false;
  Loop::TimerId ticker = 0;
};

constexpr const char* kAsk = R"({"id":1,"method":"A.b"})";
constexpr const char* kAnswer = R"({"id":1,"result":{"value":""}})";

TEST_F(CdpServer, TheSocketIsItsOwnersAlone) {
  EXPECT_EQ(std::filesystem::status(path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(CdpServer, AClientIsGreetedAndServed) {
  Client client = connect();
  EXPECT_EQ(ask(client, kAsk), kAnswer);
  client.socket.reset();
  expect_clean();
}

TEST_F(CdpServer, MessagesBehindTheHelloAreNotLost) {
  Client client = raw();
  send(client, std::string(R"({"hello":"browser"})") + '\0' + kAsk);
  EXPECT_TRUE(receive(client).contains("\"hello\":\"ok\""));
  EXPECT_EQ(receive(client), kAnswer);
}

TEST_F(CdpServer, AHelloThatIsNoneIsRefusedInWords) {
  for (const char* hello :
       {"", "x", "{}", "[]", R"({"hello":"other"})", R"({"hello":"page"})", R"({"hello":"page","target":""})",
        R"({"hello":"page","target":"a b"})", R"({"hello":"browser","target":"T"})", R"({"hello":"browser","x":1})"}) {
    Client client = raw();
    EXPECT_TRUE(ask(client, hello).contains("\"hello\":\"refused\"")) << hello;
    EXPECT_EQ(receive(client), "ended");
  }
  Client client = raw();
  send(client, std::string(5000, ' '), false);
  EXPECT_TRUE(receive(client).contains("hello is too long"));
  expect_clean();
}

TEST_F(CdpServer, WhoSaysNoHelloIsClosed) {
  make({.hello_us = 1'000});
  Client client = raw();
  EXPECT_EQ(receive(client), "ended");
}

TEST_F(CdpServer, ABrowserThatDoesNotAnswerIsSaid) {
  make({.attach_us = 1'000});
  browser->answers = false;
  Client client = raw();
  EXPECT_TRUE(ask(client, R"({"hello":"browser"})").contains("the browser does not answer"));
}

TEST_F(CdpServer, OneMoreThanTheMostClientsIsRefused) {
  make({.clients = 3});
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(connect());
  Client more = raw();
  EXPECT_TRUE(receive(more).contains("3 clients are connected"));
  EXPECT_EQ(ask(clients[2], kAsk), kAnswer);
  clients.clear();
  expect_clean();
}

TEST_F(CdpServer, AMessageOf300MiBIsRefusedWhileItComes) {
  Client client = connect(), other = connect();
  const std::string part(1 << 20, ' ');
  int sent = 0;
  while (!client.ended && sent < 300) {
    send(client, part, false);
    ++sent;
    client.read();
  }
  EXPECT_TRUE(until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends.at(0), "its message is too long");
  EXPECT_LE(sent, 260) << "it is not waited for";
  EXPECT_EQ(ask(other, kAsk), kAnswer);
}

TEST_F(CdpServer, ASlowReaderOf100MBDelaysNobodyAndGetsItAll) {
  Client slow = connect(), other = connect();
  send(slow, R"({"id":1,"method":"A.b","size":100000000})");
  ASSERT_TRUE(until([&] { return browser->heard.size() >= 3; }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(other, kAsk), kAnswer);
  EXPECT_EQ(receive(slow).size(), 100'000'000u + std::string_view(kAnswer).size());
  EXPECT_TRUE(ends.empty());
}

TEST_F(CdpServer, WhoDoesNotReadIsClosedAtItsLimit) {
  make({.waiting_bytes = 1 << 20});
  Client slow = connect(), other = connect();
  for (int i = 0; i < 40; ++i)
    browser->say(R"({"method":"A.b","params":{"x":")" + std::string(100'000, 'x') + R"("},"sessionId":"S1"})");
  ASSERT_TRUE(until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends.at(0), "it does not read what is sent to it");
  EXPECT_EQ(ask(other, kAsk), kAnswer);
  EXPECT_TRUE(until([&] { return browser->sessions == std::set<std::string>{"S2"}; }));
}

TEST_F(CdpServer, BeyondTheTotalTheLargestIsClosed) {
  make({.held_bytes = 768 << 10});
  Client large = connect(), small = connect();
  send(small, std::string("{\"id\":1,") + std::string(256 << 10, ' '), false);
  send(large, "{" + std::string(768 << 10, ' '), false);
  ASSERT_TRUE(until([&] { return !ends.empty(); }));
  EXPECT_TRUE(ends.at(0).contains("most for this one"));
  EXPECT_EQ(ask(small, R"("method":"A.b"})"), kAnswer);
}

TEST_F(CdpServer, ClosingTheBrowserIsAnsweredThenTheConnectionEnds) {
  Client client = connect(), other = connect();
  EXPECT_EQ(ask(client, R"({"id":-9999,"method":"Browser.close"})"), R"({"id":-9999,"result":{}})");
  EXPECT_EQ(receive(client), "ended");
  EXPECT_EQ(ask(other, kAsk), kAnswer);
  EXPECT_FALSE(browser_closed);
}

TEST_F(CdpServer, AConnectionCutAnywhereLeavesNothingAndTouchesNobody) {
  Client other = connect();
  const std::string talk = std::string(R"({"hello":"browser"})") + '\0' + R"({"id":1,"method":"A.b","params":{"a":"b"}})" + '\0' +
                           R"({"id":2,"method":"A.b","sessionId":"x"})" + '\0' + R"({"id":3,"method":"Browser.close"})" + '\0';
  for (std::size_t n = 0; n <= talk.size(); ++n) {
    Client client = raw();
    send(client, talk.substr(0, n), false);
    client.socket.reset();
    if (n % 16 == 0) EXPECT_EQ(ask(other, kAsk), kAnswer) << n;
  }
  EXPECT_EQ(ask(other, kAsk), kAnswer);
  other.read();
  EXPECT_TRUE(other.unread.empty());
  EXPECT_TRUE(
      until([&] { return server->clients() == 1 && browser->sessions.size() == 1 && server->router().unanswered() == 0; }));
  EXPECT_EQ(server->router().sessions(), 1u);
  for (const json::Value& message : browser->heard) EXPECT_NE(message["method"], "Browser.close");
}

TEST_F(CdpServer, WhileHeldNothingPassesAndAfterwardsAllDoes) {
  Client client = connect();
  server->hold(true);
  send(client, kAsk);
  browser->say(R"({"method":"A.typed","params":{},"sessionId":"S1"})");
  Client late = connect();  // is greeted
  EXPECT_EQ(browser->heard.size(), 2u) << "two clients were attached";
  client.read();
  EXPECT_TRUE(client.unread.empty());
  server->hold(false);
  EXPECT_EQ(receive(client), R"({"method":"A.typed","params":{}})");
  EXPECT_EQ(receive(client), kAnswer);
  EXPECT_EQ(ask(late, kAsk), kAnswer);
}

TEST_F(CdpServer, WhatIsHeldIsBounded) {
  make({.waiting_bytes = 1 << 20});
  Client client = connect();
  server->hold(true);
  for (int i = 0; i < 40; ++i)
    browser->say(R"({"method":"A.b","params":{"x":")" + std::string(100'000, 'x') + R"("},"sessionId":"S1"})");
  EXPECT_EQ(receive(client), "ended");
  EXPECT_TRUE(client.unread.empty());
}

TEST_F(CdpServer, AClientThatLeavesWhileHeldIsNoticed) {
  Client client = connect();
  server->hold(true);
  client.socket.reset();
  expect_clean();
}

TEST_F(CdpServer, ABrowserThatDoesNotReadStopsTheReadingOfClients) {
  make({.to_browser_bytes = 1 << 20});
  Client client = connect();
  browser->reads(false);
  const std::string message = R"({"id":1,"method":"A.b","params":{"x":")" + std::string(100'000, 'x') + "\"}}" + '\0';
  std::size_t sent = 0, refused_in_a_row = 0;
  while (refused_in_a_row < 100 && sent < (64u << 20)) {
    const std::string_view left = std::string_view(message).substr(sent % message.size());
    const ssize_t n = ::send(client.socket.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    sent += n > 0 ? static_cast<std::size_t>(n) : 0;
    refused_in_a_row = n > 0 ? 0 : refused_in_a_row + 1;
    turn();
  }
  EXPECT_LT(sent, 8u << 20) << "what the pipe, the socket and the queue take";
  browser->reads(true);
  EXPECT_EQ(receive(client), kAnswer);
}

TEST_F(CdpServer, TheBrowsersEndIsToldAndEveryClients) {
  Client client = connect();
  browser->close();
  ASSERT_TRUE(until([&] { return browser_closed; }));
  server->disconnect_browser("the browser has ended");
  EXPECT_EQ(receive(client), "ended");
  EXPECT_EQ(ends.at(0), "the browser has ended");
  Client late = raw();
  EXPECT_TRUE(ask(late, R"({"hello":"browser"})").contains("the browser is not running"));
}

TEST_F(CdpServer, ATooLargeAnswerIsAnErrorForItsClient) {
  make({.message_bytes = 1 << 20});
  Client client = connect();
  EXPECT_TRUE(ask(client, R"({"id":1,"method":"A.b","size":2000000})").contains("the answer has more than"));
  EXPECT_EQ(ask(client, kAsk), kAnswer);
}

}  // namespace
}  // namespace caisson::cdp
