#include "server_fixture.h"

#include "agent/http/budget.h"
#include "agent/http/pace.h"

namespace caisson {
namespace {

using http::Budget;
using http::Pace;
using http::Room;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Flaw15Budget, SharesCountForEachPayerAndForAll) {
  const auto budget = std::make_shared<Budget>(1000);
  const auto client = budget->open(500), workspace = budget->open(600);
  Budget::Share first({client, workspace});
  EXPECT_EQ(first.resize(400), Room::granted);
  EXPECT_EQ(first.resize(501), Room::part_full);
  EXPECT_EQ(first.bytes(), 400u) << "what is not granted changes nothing";
  {
    Budget::Share second({budget->open(500), workspace});
    EXPECT_EQ(second.resize(201), Room::part_full) << "the workspace is theirs together";
    EXPECT_EQ(second.resize(200), Room::granted);
    Budget::Share third({budget->open(500)});
    EXPECT_EQ(third.resize(401), Room::full);
    EXPECT_EQ(third.resize(400), Room::granted);
    EXPECT_EQ(budget->used(), 1000u);
  }
  EXPECT_EQ(budget->used(), 400u) << "a share that ends gives back";
  Budget::Share moved = std::move(first);
  EXPECT_EQ(moved.resize(10), Room::granted);
  EXPECT_EQ(budget->used(), 10u);
  moved = Budget::Share();
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(client->used() + workspace->used(), 0u);
}

TEST(Flaw15Budget, TheOneThatHoldsMostGivesBack) {
  const auto budget = std::make_shared<Budget>(1000);
  const auto large = budget->open(1000), small = budget->open(1000), asker = budget->open(1000);
  Budget::Share of_large({large}), of_small({small}), wanted({asker});
  large->give_back = [&](const Budget::Payer&) { return of_large.resize(of_large.bytes() / 2) == Room::granted; };
  small->give_back = [&](const Budget::Payer&) { return of_small.resize(0) == Room::granted; };
  EXPECT_EQ(of_small.resize(100), Room::granted);
  EXPECT_EQ(of_large.resize(900), Room::granted);
  EXPECT_EQ(wanted.resize(400), Room::granted);
  EXPECT_EQ(of_small.bytes(), 100u);
  EXPECT_EQ(of_large.bytes(), 450u);
  EXPECT_EQ(wanted.resize(600), Room::granted);
  EXPECT_EQ(of_small.bytes(), 100u);
  EXPECT_EQ(wanted.resize(901), Room::full) << "who holds less does not pay for one that holds more";
  EXPECT_EQ(of_small.bytes(), 100u);
  large->give_back = nullptr;
  EXPECT_LE(budget->used(), 1000u);
}

TEST(Flaw15Budget, AWordThatFreesNothingIsNotTaken) {
  const auto budget = std::make_shared<Budget>(100);
  const auto liar = budget->open(100);
  Budget::Share share({liar});
  int asked = 0;
  liar->give_back = [&](const Budget::Payer&) { return ++asked > 0; };
  EXPECT_EQ(share.resize(60), Room::granted);
  Budget::Share other({budget->open(100)});
  EXPECT_EQ(other.resize(60), Room::full);
  EXPECT_EQ(asked, 1);
}

TEST(Flaw15Budget, ALittleIsLeftToEach) {
  const auto budget = std::make_shared<Budget>(1000, 50);
  Budget::Share rest({budget->open(1000)}), small({budget->open(1000)});
  EXPECT_EQ(rest.resize(1000), Room::granted);
  EXPECT_EQ(small.resize(50), Room::granted);
  EXPECT_EQ(small.resize(51), Room::full);
  EXPECT_EQ(rest.resize(1001), Room::part_full);
}

TEST(Flaw15Pace, ABurstDoesNotBuyTimeToStandStill) {
  const Pace::Clock::time_point begin{};
  Pace pace;
  pace.begin(Pace::At::body, begin);
  pace.moved(8'000'000, seconds(1), begin + milliseconds(10));
  EXPECT_FALSE(pace.slow(seconds(1), begin + milliseconds(500))) << "too young to tell";
  EXPECT_GT(pace.slow(seconds(1), begin + milliseconds(1500)), 1'000'000) << "a part of it may have come in the last second";
  EXPECT_EQ(pace.slow(seconds(1), begin + milliseconds(2100)), 0) << "nothing came in the last second";
  for (int i = 1; i <= 30; ++i) pace.moved(1, seconds(1), begin + milliseconds(900 * i));
  const auto slow = pace.slow(seconds(1), begin + seconds(28));
  ASSERT_TRUE(slow);
  EXPECT_LT(*slow, 10);
  pace.waits_for_us = true;
  EXPECT_FALSE(pace.slow(seconds(1), begin + seconds(60)));
  pace.waits_for_us = false;
  pace.begin(Pace::At::serving, begin);
  EXPECT_FALSE(pace.slow(seconds(1), begin + seconds(60))) << "a command may run as long as it likes";
}

http::Limits narrow() {
  http::Limits limits;
  limits.held_bytes = 4'000'000;
  limits.held_bytes_of_one = limits.held_bytes_of_workspace = 3'500'000;
  limits.room_wait = milliseconds(300);
  limits.room_poll = milliseconds(10);
  limits.pace_window = milliseconds(50);
  return limits;
}

std::string head_of_post(std::size_t length) {
  return "POST /hold HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

// Whoever waits for room is refused when none comes: nobody here stands still for long enough to be ended.
TEST_F(ServerTest, Flaw15BodiesBeyondTheRoomAreRefusedAndSmallOnesServed) {
  http::Limits limits = narrow();
  limits.pace_window = seconds(60);
  start(limits);
  std::vector<std::unique_ptr<Client>> hostile;
  for (int i = 0; i < 4; ++i) {
    hostile.push_back(std::make_unique<Client>(port_));
    hostile.back()->send(head_of_post(1'000'001) + std::string(1'000'000, 'x'));
  }
  int refused = 0;
  std::vector<pollfd> any;
  for (const auto& client : hostile) any.push_back({client->fd(), POLLIN, 0});
  (void)::poll(any.data(), any.size(), 30'000);
  for (const auto& client : hostile) {
    pollfd ready{client->fd(), POLLIN, 0};
    if (::poll(&ready, 1, 1000) <= 0) continue;
    const std::string answer = client->response();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 429 ") && answer.contains("retry-after: 1\r\n")) << answer;
    ++refused;
  }
  EXPECT_GE(refused, 1);
  EXPECT_TRUE(once(get("/open")).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(once(post("/echo", "small")).ends_with("small"));
}

TEST_F(ServerTest, Flaw15AClientThatMovesGetsTheRoomOfThoseThatStandStill) {
  http::Limits limits = narrow();
  // Where each has got a part and waits for the rest, nobody can be ended: whoever began first is refused first.
  limits.room_wait = seconds(2);
  limits.pace_window = milliseconds(500);  // a busy machine may keep whoever moves from it for some time
  start(limits);
  std::vector<std::unique_ptr<Client>> hostile;
  for (int i = 0; i < 8; ++i) {
    hostile.push_back(std::make_unique<Client>(port_));
    hostile.back()->send(head_of_post(1'000'001) + std::string(1'000'000, 'x'));
  }
  for (int i = 0; i < 3; ++i) {
    std::string answer;
    // As retry-after asks for: it may have waited for those that began before it.
    for (int tries = 0; tries < 20 && !answer.starts_with("HTTP/1.1 200 "); ++tries) {
      EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 429 ")) << answer.substr(0, 200);
      answer = once(post("/hold", std::string(1'000'000, 'y')));
    }
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer.substr(0, 200);
  }
}

TEST_F(ServerTest, Flaw15AnswersThatAreNotReadTakeNoMoreThanTheirPart) {
  http::Limits limits = narrow();
  limits.pace_window = seconds(60);
  start(limits);
  // The kernel takes some of them; the first that it does not take whole holds the client's part from then on.
  std::vector<std::unique_ptr<Client>> hostile;
  std::string refused;
  for (int i = 0; i < 40 && refused.empty(); ++i) {
    hostile.push_back(std::make_unique<Client>(port_));
    for (int n = 0; n < 8; ++n) hostile.back()->send(get("/large"));
    if (std::string answer = once(get("/large")); !answer.starts_with("HTTP/1.1 200 ")) refused = std::move(answer);
  }
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 1\r\n")) << refused;
  EXPECT_TRUE(once(get("/open")).starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, Flaw15OneThatStandsStillMakesWayForANewConnection) {
  http::Limits limits = narrow();
  limits.connections_of_one = 3;
  start(limits);
  Client idle(port_), slow(port_), busy(port_);
  idle.send(get("/open"));
  EXPECT_TRUE(idle.response().starts_with("HTTP/1.1 200 "));
  slow.send(head_of_post(100) + "x");
  const int before = begun_slow;
  busy.send(get("/slow"));
  await_slow(before);
  usleep(100'000);  // longer than the window in which a pace is taken
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(once(get("/open")).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(busy.response().contains("\"done\"")) << "one that is being served is not ended";
}

TEST_F(ServerTest, Flaw15WebSocketMessagesThatDoNotEndAreBounded) {
  http::Limits limits = narrow();
  limits.held_bytes_of_one = 300'000;
  limits.head_timeout = milliseconds(3000);
  start(limits);
  Client client(port_);
  client.send(
      "GET /talk HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-AIO-API-Key: secret\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  // A text frame of 1,000,000 bytes, masked with zeros, of which the last never comes.
  client.send(std::string("\x81\xff\0\0\0\0\0\x0f\x42\x40\0\0\0\0", 14) + std::string(999'999, 'x'));
  const std::string rest = client.read_all();
  EXPECT_TRUE(rest.starts_with("\x88") && rest.contains("\x03\xf5")) << "closed with 1013, try again later";
}

}  // namespace
}  // namespace caisson
