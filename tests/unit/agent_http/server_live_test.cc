// What takes time: slow and vanishing clients, event streams, WebSockets, full servers, shutdown.
#include "server_fixture.h"

namespace caisson {
namespace {

using std::chrono::milliseconds;

bool has(const std::string& text, std::string_view part) { return text.contains(part); }

template <class F>
bool eventually(F condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    usleep(10'000);
  }
  return false;
}

// A client frame, masked with zeros.
std::string frame(int opcode, std::string_view payload) {
  std::string out{static_cast<char>(0x80 | opcode)};
  if (payload.size() < 126) {
    out += static_cast<char>(0x80 | static_cast<int>(payload.size()));
  } else {
    out += '\xff';
    for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>((payload.size() >> shift) & 0xff);
  }
  return out.append(4, '\0').append(payload);
}

std::string upgrade(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         std::string(more) + "\r\n";
}

TEST_F(ServerTest, SlowHeadsAreCut) {
  http::Limits limits;
  limits.head_timeout = milliseconds(100);
  start(limits);
  Client client(port_);
  client.send("GET / HT");
  EXPECT_EQ(client.read_all(), "");
  Client silent(port_);
  EXPECT_EQ(silent.read_all(), "");
}

TEST_F(ServerTest, SlowBodiesAreCut) {
  http::Limits limits;
  limits.body_timeout = milliseconds(100);
  start(limits);
  Client client(port_);
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(ServerTest, IdleConnectionsAreClosed) {
  http::Limits limits;
  limits.idle_timeout = milliseconds(100);
  start(limits);
  Client client(port_);
  client.send(get("/open"));
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(ServerTest, ClientsThatDoNotReadAreCut) {
  http::Limits limits;
  limits.write_timeout = milliseconds(100);
  start(limits);
  Client client(port_);
  const int small = 4096;
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  for (int i = 0; i < 20; ++i) client.send(get("/large"));
  EXPECT_TRUE(eventually([&] { return on_thread([&] { return server_->connections(); }) == 0; }));
}

TEST_F(ServerTest, OneConnectionTooManyIsTurnedAway) {
  http::Limits limits;
  limits.connections = 2;
  start(limits);
  Client first(port_), second(port_);
  first.send(get("/open"));
  second.send(get("/open"));
  EXPECT_TRUE(first.response().starts_with("HTTP/1.1 200 ") && second.response().starts_with("HTTP/1.1 200 "));
  Client third(port_);
  third.send(get("/open"));
  const std::string refused = third.read_all();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ") && has(refused, "Too many open connections")) << refused;
  first.close();
  EXPECT_TRUE(eventually([&] { return has(once(get("/open")), " 200 "); }));
}

TEST_F(ServerTest, HandlerOutlivesItsClient) {
  start();
  const int before = finished_slow;
  {
    Client client(port_);
    const int begun = begun_slow;
    client.send(get("/slow"));
    await_slow(begun);
  }
  EXPECT_TRUE(eventually([&] { return finished_slow == before + 1; }));
  EXPECT_TRUE(saw_client_gone);
  EXPECT_TRUE(eventually([&] { return on_thread([&] { return server_->connections(); }) == 0; }));
}

TEST_F(ServerTest, HalfClosedClientStillGetsItsAnswer) {
  start();
  Client client(port_);
  client.send(get("/slow"));
  ::shutdown(client.fd(), SHUT_WR);
  EXPECT_TRUE(has(client.read_all(), "\"done\""));
}

TEST_F(ServerTest, StopLetsRequestsFinish) {
  start();
  Client busy(port_), idle(port_);
  idle.send(get("/open"));
  EXPECT_TRUE(idle.response().starts_with("HTTP/1.1 200 "));
  const int before = begun_slow;
  busy.send(get("/slow"));
  await_slow(before);
  finish(milliseconds(3000));
  const std::string answer = busy.read_all();
  EXPECT_TRUE(has(answer, "\"done\"") && has(answer, "connection: close")) << answer;
  EXPECT_EQ(idle.read_all(), "");
}

TEST_F(ServerTest, TakenPortIsNamed) {
  start();
  http::Server other(io_, *app_);
  const auto taken = other.listen("127.0.0.1", port_);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::already_exists);
  EXPECT_TRUE(has(taken.error().what, "the port is taken"));
}

TEST_F(ServerTest, EventsAreSentOnlyWhenAskedFor) {
  start();
  EXPECT_TRUE(has(once(post("/events", "", "Accept: */*\r\n")), "\"json\""));
  Client client(port_);
  client.send(post("/events", "", "Accept: application/json, Text/Event-Stream;q=0.5\r\n") + get("/open"));
  const std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(has(stream, "content-type: text/event-stream\r\n"));
  EXPECT_TRUE(has(stream, "id: 1\nevent: output\ndata: a\ndata: b\ndata: data: c\ndata: \n\n")) << stream;
  EXPECT_TRUE(has(stream, "event: end\ndata: x\n\n"));
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 200 "));  // the connection goes on
}

TEST_F(ServerTest, SilentEventStreamsBeat) {
  http::Limits limits;
  limits.heartbeat = milliseconds(40);
  start(limits);
  Client client(port_);
  client.send(post("/events", "", "Accept: text/event-stream\r\nConnection: close\r\n"));
  const std::string stream = client.read_all();
  EXPECT_TRUE(has(stream, ": keep-alive\n\n") && stream.ends_with("0\r\n\r\n")) << stream;
}

TEST_F(ServerTest, EventStreamToOldClientsEndsWithTheConnection) {
  start();
  Client client(port_);
  client.send("POST /events HTTP/1.0\r\nX-AIO-API-Key: secret\r\nAccept: text/event-stream\r\n\r\n");
  const std::string stream = client.read_all();
  EXPECT_TRUE(stream.ends_with("event: end\ndata: x\n\n")) << stream;
  EXPECT_FALSE(has(stream, "transfer-encoding"));
}

TEST_F(ServerTest, WebSocketEchoes) {
  start();
  Client client(port_);
  client.send(upgrade("/talk?api_key=secret"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  client.send(frame(1, "hi"));
  EXPECT_EQ(client.read_exactly(9),
            "\x81\x07"
            "echo hi");
  client.send(frame(9, "x"));
  EXPECT_EQ(client.read_exactly(3), "\x8a\x01x");
  client.send(frame(1, "bye"));
  EXPECT_EQ(client.read_exactly(10),
            "\x81\x08"
            "echo bye");
  EXPECT_EQ(client.read_exactly(4), "\x88\x02\x03\xe8");  // closed normally by the server
  client.send(frame(8, "\x03\xe8"));
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(ServerTest, WebSocketAsksForKeyOriginAndUpgrade) {
  start();
  EXPECT_TRUE(has(once(upgrade("/talk")), " 401 "));
  EXPECT_TRUE(has(once(upgrade("/talk?api_key=secret", "Origin: http://evil\r\n")), " 403 "));
  EXPECT_TRUE(has(once(get("/talk")), " 426 "));
}

TEST_F(ServerTest, WebSocketRefusesBinaryAndOversizedMessages) {
  start();
  Client binary(port_), oversized(port_);
  for (Client* client : {&binary, &oversized}) {
    client->send(upgrade("/talk?api_key=secret"));
    EXPECT_TRUE(client->read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  }
  binary.send(frame(2, "x"));
  EXPECT_TRUE(binary.read_exactly(4).starts_with("\x88"));
  oversized.send(frame(1, std::string(1024 * 1024 + 1, 'x')));
  EXPECT_EQ(oversized.read_exactly(4), "\x88\x02\x03\xf1");  // 1009: too big
}

TEST_F(ServerTest, SilentWebSocketsArePingedThenCut) {
  http::Limits limits;
  limits.websocket_idle = milliseconds(200);
  start(limits);
  Client client(port_);
  client.send(upgrade("/talk?api_key=secret"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  const std::string rest = client.read_all();
  EXPECT_TRUE(rest.starts_with("\x89")) << rest;
  EXPECT_FALSE(has(rest, "TIMEOUT"));
}

TEST_F(ServerTest, StopClosesWebSockets) {
  start();
  Client client(port_);
  client.send(upgrade("/talk?api_key=secret"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  finish(milliseconds(200));
  EXPECT_TRUE(client.read_exactly(4).starts_with("\x88"));
}

// --- bodies in pieces ---

TEST_F(ServerTest, StreamedBodiesComeInPieces) {
  start();
  const std::string body(5'000'000, 'x');
  Client client(port_);
  client.send(post("/count", body));
  EXPECT_NE(client.response().find("\"bounded\":true,\"size\":5000000"), std::string::npos);
  client.send(get("/open"));  // the connection goes on
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 200"));
}

TEST_F(ServerTest, StreamedBodiesMayBeChunked) {
  start();
  Client client(port_);
  client.send(
      "POST /count HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: secret\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_NE(client.response().find("\"size\":5"), std::string::npos);
}

TEST_F(ServerTest, AStreamedBodyThatIsNotReadToItsEndEndsTheConnection) {
  start();
  Client client(port_);
  client.send("POST /count HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: secret\r\nContent-Length: 60000000\r\n\r\n");
  client.send(std::string(55'000'000, 'x'));
  const std::string answer = client.read_all();
  EXPECT_NE(answer.find("connection: close"), std::string::npos) << answer.substr(0, 500);
  EXPECT_NE(answer.find("\"bounded\":true"), std::string::npos);
}

TEST_F(ServerTest, ASizedBodyThatIsCutEndsTheConnection) {
  start();
  Client whole(port_);
  whole.send(get("/sized"));
  EXPECT_TRUE(whole.response().ends_with("\r\n\r\n0123456789"));
  whole.send("HEAD /sized HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: secret\r\n\r\n");
  EXPECT_NE(whole.read_until("\r\n\r\n").find("content-length: 10"), std::string::npos);
  Client cut(port_);
  cut.send(get("/sized?cut=1"));
  EXPECT_TRUE(cut.read_all().ends_with("\r\n\r\n01234"));
}

}  // namespace
}  // namespace caisson
