// The door between a client, which uses it as its proxy, and a dialer that the test plays: what it asks for, what it believes,
// and that both may go at any time.
#include "launcher/egress/door/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "launcher/common/base/scm.h"
#include "tests/unit/egress_door/pair.h"

namespace caisson::egress {
namespace {

class DoorTest : public PollTest {
 protected:
  void SetUp() override {
    PollTest::SetUp();
    auto [launcher, theirs] = pair(SOCK_SEQPACKET);
    launcher_ = std::move(launcher);
    door_ = std::make_unique<Door>(*poll_, std::move(theirs), 100);
    List list;
    list.rules.push_back({.name = "api.test", .ports = {{80, 80}, {443, 443}, {2222, 2222}}, .why = "a test"});
    open(list);
    set_peer();
  }
  void order(Order what, const std::vector<int>& fds, std::uint64_t workspace = 1) {
    const OrderHead head{what, 1, workspace};
    ASSERT_EQ(scm::send(launcher_.get(), &head, sizeof head, fds.data(), fds.size()), static_cast<ssize_t>(sizeof head));
  }
  static Fd memory_file(std::string_view text) {
    Fd file(::memfd_create("list", MFD_CLOEXEC));
    say(file, text);
    return file;
  }
  static Fd file_of(const List& list) {
    const std::string bytes = list_bytes(list);
    return memory_file("bash\n" + std::to_string(bytes.size()) + "\n" + bytes);
  }
  // The client connects to 127.0.0.1: that is how the door's own port is asked.
  void open(const List& list) {
    const Fd file = file_of(list), names(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    Fd v4(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), v6(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    place_ = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof place_;
    ASSERT_EQ(::bind(v4.get(), reinterpret_cast<sockaddr*>(&place_), sizeof place_), 0);
    ASSERT_EQ(::getsockname(v4.get(), reinterpret_cast<sockaddr*>(&place_), &size), 0);
    ASSERT_EQ(::listen(v4.get(), 64) | ::listen(v6.get(), 64), 0);
    order(Order::open, {file.get(), v4.get(), v6.get(), names.get()});
  }
  void set_peer() {
    auto [ours, theirs] = pair(SOCK_SEQPACKET);
    dialer_ = std::move(ours);
    order(Order::peer, {theirs.get()}, 0);
  }
  [[nodiscard]] Fd connect() const {
    Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&place_), sizeof place_), 0);
    return client;
  }
  struct Asked {
    DialRequest head{};
    std::string host;
  };
  Asked next_dial() {
    Asked out;
    until([&] {
      const std::string text = read_now(dialer_);
      if (text.size() < sizeof out.head) return false;
      std::memcpy(&out.head, text.data(), sizeof out.head);
      out.host = text.substr(sizeof out.head, out.head.host_bytes);
      EXPECT_EQ(text.substr(sizeof out.head + out.head.host_bytes), "bash");
      return true;
    });
    return out;
  }
  // The server's end of a connection that the dialer has made.
  Fd dialed(std::uint32_t id) {
    auto [ours, theirs] = pair();
    const DialAnswer answer{.id = id, .address = {93, 184, 216, 34}};
    const int fd = theirs.get();
    EXPECT_EQ(scm::send(dialer_.get(), &answer, sizeof answer, &fd, 1), static_cast<ssize_t>(sizeof answer));
    return std::move(ours);
  }
  void answer(const DialAnswer& answer) { say(dialer_, {reinterpret_cast<const char*>(&answer), sizeof answer}); }
  std::string read_until(const Fd& from, std::string_view part) {
    std::string got;
    until([&] { return (got += read_now(from)).find(part) != std::string::npos; });
    return got;
  }
  // What the launcher hears, without what is said once a second.
  std::string next_record() {
    std::string out;
    until([&] {
      const std::string text = read_now(launcher_);
      SaidHead head;
      if (text.size() < sizeof head) return false;
      std::memcpy(&head, text.data(), sizeof head);
      out = text.substr(sizeof head);
      return head.said == Said::record;
    });
    return out;
  }
  void turn(int count = 5) {
    int turns = 0;
    until([&] { return ++turns > count; });
  }
  sockaddr_in place_{};
  Fd launcher_, dialer_;
  std::unique_ptr<Door> door_;
};

constexpr std::string_view kConnect = "CONNECT api.test:2222 HTTP/1.1\r\nHost: api.test:2222\r\n\r\n";

TEST_F(DoorTest, AsksTheDialerAndRelaysOverWhatItHandsBack) {
  const Fd client = connect();
  say(client, kConnect);
  const Asked asked = next_dial();
  EXPECT_EQ(asked.host, "api.test");
  EXPECT_EQ(asked.head.port, 2222);
  EXPECT_EQ(asked.head.workspace, 1U);
  const Fd server = dialed(asked.head.id);
  EXPECT_NE(read_until(client, "\r\n\r\n").find(" 200 "), std::string::npos);
  say(client, "ping");
  EXPECT_EQ(read_until(server, "ping"), "ping");
  say(server, "pong");
  EXPECT_EQ(read_until(client, "pong"), "pong");
}

TEST_F(DoorTest, WhatTheListRefusesIsNotAskedOfTheDialer) {
  const Fd client = connect();
  say(client, "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n");
  EXPECT_NE(read_until(client, "not_listed").find(" 403 "), std::string::npos);
  EXPECT_EQ(read_now(dialer_), "");
  EXPECT_NE(next_record().find("\"refusal\":\"not_listed\""), std::string::npos);
}

TEST_F(DoorTest, WhatTheDialerRefusesIsToldWithItsReason) {
  const Fd client = connect();
  say(client, kConnect);
  answer({.id = next_dial().head.id,
          .error = EACCES,
          .refusal = static_cast<std::uint32_t>(Refusal::rebinding),
          .address = {10, 0, 0, 1}});
  EXPECT_NE(read_until(client, "rebinding").find(" 403 "), std::string::npos);
  EXPECT_NE(next_record().find("\"address\":\"10.0.0.1\""), std::string::npos);
}

TEST_F(DoorTest, AClientThatGoesWhileItIsDialedForIsForgotten) {
  Fd client = connect();
  say(client, kConnect);
  const Asked asked = next_dial();
  client.reset();
  const Fd server = dialed(asked.head.id);
  until([&] { return at_end(server) || !read_now(server).empty(); });
  EXPECT_NE(next_record().find("api.test"), std::string::npos);
}

std::vector<std::string> no_answers(std::uint32_t id) {
  return {"short", message_of(DialAnswer{.id = id}),  // connected, and no connection
          message_of(DialAnswer{.id = id, .error = 1, .refusal = 99}), message_of(DialAnswer{.id = id, .error = 1}) + "x"};
}

TEST_F(DoorTest, ADialerThatSaysWhatNoDialerSaysIsNotHeardAgain) {
  for (std::size_t i = 0; i < no_answers(0).size(); ++i) {
    const Fd client = connect();
    say(client, kConnect);
    say(dialer_, no_answers(next_dial().head.id)[i]);
    EXPECT_NE(read_until(client, "dialer").find(" 503 "), std::string::npos) << i;
    set_peer();
    turn();
  }
}

TEST_F(DoorTest, AnswersThatNobodyWaitsForChangeNothing) {
  const Fd client = connect();
  say(client, kConnect);
  const Asked asked = next_dial();
  answer({.id = asked.head.id + 7, .error = ECONNREFUSED});
  {
    const Fd nobodys = dialed(asked.head.id + 8);
  }
  const Fd server = dialed(asked.head.id);
  answer({.id = asked.head.id, .error = ECONNREFUSED});  // once more
  say(client, "x");
  EXPECT_EQ(read_until(server, "x"), "x");
}

TEST_F(DoorTest, ADialerThatGoesFailsWhatWaitsForItAndNothingElse) {
  const Fd runs = connect();
  say(runs, kConnect);
  const Fd server = dialed(next_dial().head.id);
  (void)read_until(runs, "\r\n\r\n");
  const Fd waits = connect();
  say(waits, kConnect);
  (void)next_dial();
  dialer_.reset();
  EXPECT_NE(read_until(waits, "dialer").find(" 503 "), std::string::npos);
  say(runs, "still");
  EXPECT_EQ(read_until(server, "still"), "still");
  set_peer();
  const Fd again = connect();
  say(again, kConnect);
  EXPECT_EQ(next_dial().host, "api.test");
}

// Whatever state a connection is in when its workspace ends.
TEST_F(DoorTest, AWorkspaceEndsWithAllItsConnections) {
  const Fd silent = connect(), half = connect(), dialing = connect(), relayed = connect(), asking = connect();
  say(relayed, kConnect);
  const Fd server = dialed(next_dial().head.id);
  (void)read_until(relayed, "\r\n\r\n");
  say(asking, "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n");
  const Fd web = dialed(next_dial().head.id);
  (void)read_until(web, "\r\n\r\n");
  say(half, "CONNECT api.te");
  say(dialing, kConnect);
  const Asked asked = next_dial();
  order(Order::close, {});
  for (const Fd* client : {&silent, &half, &dialing, &relayed, &asking}) {
    char byte = 0;
    until([&] { return ::recv(client->get(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET; });
  }
  until([&] { return at_end(server) && at_end(web); });
  {
    const Fd nobodys = dialed(asked.head.id);
  }
  turn();
  EXPECT_FALSE(door_->done());
}

TEST_F(DoorTest, ARequestMayComeInAnySegments) {
  const Fd client = connect();
  const std::string request = "GET http://api.test/path HTTP/1.1\r\nHost: api.test\r\n\r\n";
  for (const char c : request) {
    say(client, {&c, 1});
    turn(1);
  }
  const Fd server = dialed(next_dial().head.id);
  EXPECT_EQ(read_until(server, "\r\n\r\n"), "GET /path HTTP/1.1\r\nHost: api.test\r\n\r\n");
  for (const char c : std::string_view("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")) {
    say(server, {&c, 1});
    turn(1);
  }
  EXPECT_NE(read_until(client, "0\r\n\r\n").find("3\r\nabc\r\n"), std::string::npos);
}

TEST_F(DoorTest, AServerThatNeverStopsLetsOthersIn) {
  const Fd client = connect();
  say(client, "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n");
  const Fd server = dialed(next_dial().head.id);
  say(server, "HTTP/1.1 200 OK\r\n\r\n");
  const std::string block(100'000, 'x');
  Poll::Timer flood(*poll_, [] {});
  const Fd other = connect();
  say(other, kConnect);
  std::string asked;
  until([&] {
    for (int i = 0; i < 10; ++i) (void)::send(server.get(), block.data(), block.size(), MSG_DONTWAIT);
    (void)read_now(client);
    return !(asked = read_now(dialer_)).empty();
  });
  EXPECT_NE(asked.find("api.test"), std::string::npos);
}

// Clients make the launcher send lists again, as often as they like.
TEST_F(DoorTest, ListsThatComeAgainGiveNoNewConnectionsBack) {
  List list{.rules = {}, .limits = {.connections = 64, .connections_per_second = 1}};
  const auto taken = [&] {
    const Fd file = file_of(list);
    order(Order::open, {file.get()});
    turn();
    std::vector<Fd> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(connect());
    turn(20);
    return std::ranges::count_if(clients, [](const Fd& client) {
      char byte = 0;
      return ::recv(client.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    });
  };
  const std::int64_t begin_us = sys::monotonic_us();
  const auto all = taken() + taken() + taken();
  EXPECT_GE(all, 4);  // at once
  EXPECT_LE(all, 4 + (sys::monotonic_us() - begin_us) / 1'000'000);
  list.limits.connections_per_second = 2;
  EXPECT_EQ(taken(), 5);
}

TEST_F(DoorTest, EndsWithTheLauncher) {
  launcher_.reset();
  until([&] { return door_->done(); });
}

}  // namespace
}  // namespace caisson::egress
