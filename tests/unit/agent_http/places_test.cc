// Who gets a place when there are few: probes always, refused clients for no longer than nobody else wants theirs, and no
// credential or workspace all of them.
#include "agent/http/places.h"

#include "server_fixture.h"

namespace caisson {
namespace {

using std::chrono::milliseconds;

const std::string kUpgrade =
    "GET /talk HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: secret\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const std::string kProbe = "GET /probe HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kRefused = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n";  // no key, no body

// A WebSocket, which gives way to none.
void occupy(Client& client) {
  client.send(kUpgrade);
  ASSERT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
}

TEST_F(ServerTest, AFullServerServesProbesAndNothingElse) {
  http::Limits limits;
  limits.connections = 1;
  start(limits);
  Client busy(port_);
  occupy(busy);
  EXPECT_TRUE(once(kProbe).starts_with("HTTP/1.1 200 "));
  const std::string other = once(get("/open"));
  EXPECT_TRUE(other.starts_with("HTTP/1.1 503 ") && other.contains("Too many open connections")) << other;
  EXPECT_TRUE(once(get("/items/1")).starts_with("HTTP/1.1 503 "));
}

TEST_F(ServerTest, APlaceForProbesIsForOneRequest) {
  http::Limits limits;
  limits.connections = 1;
  start(limits);
  Client busy(port_), probe(port_);
  occupy(busy);
  probe.send(kProbe + kProbe);
  const std::string answer = probe.read_all();
  EXPECT_EQ(answer.find("HTTP/1.1 200 "), answer.rfind("HTTP/1.1 "));
  EXPECT_TRUE(answer.contains("connection: close") && !answer.ends_with("TIMEOUT")) << answer;
}

TEST_F(ServerTest, SilentClientsDoNotKeepThePlacesForProbes) {
  http::Limits limits;
  limits.connections = limits.probe_connections = 1;
  start(limits);
  Client busy(port_);
  occupy(busy);
  Client silent(port_);
  EXPECT_TRUE(once(kProbe).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(silent.read_all().starts_with("HTTP/1.1 503 "));
}

TEST_F(ServerTest, ASilentClientInAPlaceForProbesIsCut) {
  http::Limits limits;
  limits.connections = 1;
  limits.probe_timeout = milliseconds(100);
  start(limits);
  Client busy(port_);
  occupy(busy);
  Client silent(port_);
  EXPECT_EQ(silent.read_all(), "");
}

TEST_F(ServerTest, ARefusedClientGivesWayAtOnce) {
  http::Limits limits;
  limits.connections = 1;
  limits.linger = milliseconds(10'000);
  start(limits);
  Client refused(port_);
  refused.send(kRefused);
  ASSERT_TRUE(refused.response().starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(once(get("/open")).starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, RefusedClientsThatAreWaitedForAreFew) {
  http::Limits limits;
  limits.lingering = 1;
  limits.linger = milliseconds(10'000);
  start(limits);
  Client first(port_), second(port_);
  for (Client* client : {&first, &second}) {
    client->send(kRefused);
    ASSERT_TRUE(client->response().starts_with("HTTP/1.1 401 "));
  }
  for (int i = 0; i < 3000 && on_thread([this] { return server_->connections(); }) > 1; ++i) usleep(10'000);
  EXPECT_EQ(on_thread([this] { return server_->connections(); }), 1U);
}

TEST_F(ServerTest, OneCredentialDoesNotTakeEveryPlace) {
  http::Limits limits;
  limits.under_way_of_one = 1;
  start(limits);
  {
    Client first(port_);
    occupy(first);
    const std::string refused = once(kUpgrade);
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ") && refused.contains("This credential has too many")) << refused;
    EXPECT_TRUE(once(get("/open")).starts_with("HTTP/1.1 200 ")) << "it needs no credential";
  }
  std::string answer;
  for (int i = 0; i < 3000 && !answer.contains(" 200 "); ++i) {
    usleep(10'000);
    answer = once(get("/items/1"));
  }
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << "its place is free again: " << answer;
}

TEST_F(ServerTest, UnknownKeysOfTokensAreAwaitedForAFewRequestsOnly) {
  settings_.auth.jwt.remote.ask = [] {};  // the set does not come
  start();
  const std::string head = "GET /items/1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ";
  const std::string request = head + "eyJhbGciOiJFZERTQSIsImtpZCI6IngifQ.e30.AAAA\r\n\r\n";
  std::vector<std::unique_ptr<Client>> waiting;
  for (std::size_t i = 0; i < routes::App::kMaxKeysAwaited; ++i) {
    waiting.push_back(std::make_unique<Client>(port_));
    waiting.back()->send(request);
  }
  usleep(200'000);
  EXPECT_TRUE(once(request).starts_with("HTTP/1.1 401 "));
  pollfd ready{waiting.back()->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0) << "an earlier one still waits";
}

TEST_F(ServerTest, RefusalsAreDelayedForAFewConnectionsOnly) {
  start();
  const std::string request = "GET /items/1 HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: wrong\r\n\r\n";
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 150; ++i) {
    waiting.push_back(std::make_unique<Client>(port_));
    waiting.back()->send(request);
  }
  const auto answered_now = [&waiting] {
    return std::ranges::count_if(waiting, [](const auto& client) {
      pollfd ready{client->fd(), POLLIN, 0};
      return ::poll(&ready, 1, 0) == 1;
    });
  };
  auto answered = answered_now();
  for (int i = 0; i < 3000 && answered < 150 - 128; ++i, answered = answered_now()) usleep(10'000);
  EXPECT_GE(answered, 150 - 128);
  EXPECT_LE(answered, 60) << "the others wait";
}

class Asking final : public http::Exchange {
 public:
  Asking(std::string by, std::string in) : Exchange({}) {
    owner = std::move(by);
    workspace = std::move(in);
  }
  asio::awaitable<http::Response> serve(http::StreamWriter&) override { co_return http::Response(); }
  task<void> converse(http::WebSocket) override { co_return Status{}; }
};

TEST(Places, AWorkspaceHasItsBoundWhateverCredentialsAsk) {
  http::Limits limits;
  limits.under_way_of_workspace = 2;
  http::Places places;
  const auto first = places.take(Asking("a", "w"), limits), second = places.take(Asking("b", "w"), limits);
  EXPECT_FALSE(first.full || second.full);
  EXPECT_EQ(places.take(Asking("c", "w"), limits).full, http::Places::Full::workspace);
  EXPECT_FALSE(places.take(Asking("c", "v"), limits).full);
}

TEST(Places, ARefusedRequestTakesNone) {
  http::Limits limits;
  limits.under_way_of_one = limits.under_way_of_workspace = 1;
  http::Places places;
  {
    const auto held = places.take(Asking("a", "w"), limits);
    EXPECT_EQ(places.take(Asking("a", "v"), limits).full, http::Places::Full::owner);
    EXPECT_FALSE(places.take(Asking("b", "v"), limits).full);
  }
  EXPECT_FALSE(places.take(Asking("a", "w"), limits).full);
}

TEST(Places, ACredentialForOnePortHasAPartOfTheWorkspacesPreviews) {
  http::Limits limits;
  limits.relayed_of_narrow = 1;
  http::Places places;
  Asking narrow("a", "w"), wide("b", "w");
  narrow.relayed = narrow.narrow = wide.relayed = true;
  const auto first = places.take(narrow, limits), second = places.take(wide, limits);
  EXPECT_EQ(places.take(narrow, limits).full, http::Places::Full::previews);
  EXPECT_FALSE(first.full || second.full || places.take(wide, limits).full);
  narrow.workspace = "v";
  EXPECT_FALSE(places.take(narrow, limits).full);
}

TEST(Places, WhatNeedsNoCredentialIsNotCounted) {
  http::Limits limits;
  limits.under_way_of_one = limits.under_way_of_workspace = 1;
  http::Places places;
  const auto first = places.take(Asking("", ""), limits), second = places.take(Asking("", ""), limits);
  EXPECT_FALSE(first.full || second.full);
}

}  // namespace
}  // namespace caisson
