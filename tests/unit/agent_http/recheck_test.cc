// What a credential opened ends with it.
#include "server_fixture.h"

namespace caisson {
namespace {

using std::chrono::milliseconds;

class RecheckTest : public ServerTest {
 protected:
  void SetUp() override {
    http::Limits limits;
    limits.recheck = milliseconds(50);
    limits.close_grace = milliseconds(200);
    start(limits);
    token_ = on_thread([this] {
      const auto now = auth::Gate::Now::read();
      const auto owner = services_.gate->by_secret("127.0.0.1", "secret", now);
      const auto made = services_.gate->minted.mint(*owner, "test", {}, now.seconds + 100, now.seconds);
      id_ = (*made)->id;
      return services_.gate->minted.secret_of(**made);
    });
  }
  void revoke() {
    on_thread([this] {
      const auto now = auth::Gate::Now::read();
      return services_.gate->minted.revoke(*services_.gate->by_secret("127.0.0.1", "secret", now), id_, now.seconds);
    });
  }
  [[nodiscard]] std::string with_token(std::string_view line, std::string_view more) const {
    return std::string(line) + " HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: " + token_ + "\r\n" + std::string(more) + "\r\n";
  }
  [[nodiscard]] std::string upgrade() const {
    return with_token("GET /talk",
                      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
  }

  std::string token_, id_;
};

TEST_F(RecheckTest, AWebSocketIsClosedWithPolicyViolation) {
  Client client(port_);
  client.send(upgrade());
  ASSERT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  revoke();
  EXPECT_TRUE(client.read_exactly(4).ends_with("\x03\xf0"));  // 1008
}

TEST_F(RecheckTest, AClientThatDoesNotAnswerTheCloseIsCut) {
  Client client(port_);
  client.send(upgrade());
  ASSERT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  revoke();
  EXPECT_FALSE(client.read_all().ends_with("TIMEOUT"));
}

TEST_F(RecheckTest, AWebSocketWithAGoodCredentialGoesOn) {
  Client client(port_);
  client.send(upgrade());
  ASSERT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  usleep(200'000);
  client.send(std::string("\x81\x82\0\0\0\0hi", 8));
  EXPECT_EQ(client.read_exactly(9),
            "\x81\x07"
            "echo hi");
}

TEST_F(RecheckTest, AnEventStreamIsCutWithoutTheMarkOfItsEnd) {
  Client client(port_);
  client.send(with_token("POST /events?slow=1", "Accept: text/event-stream\r\nContent-Length: 0\r\n"));
  ASSERT_TRUE(client.read_until("data: c").contains(" 200 "));
  revoke();
  const std::string rest = client.read_all();
  EXPECT_FALSE(rest.contains("event: end") || rest.ends_with("0\r\n\r\n")) << rest;
}

TEST_F(RecheckTest, ABodyThatCameAfterTheEndIsNotServed) {
  Client client(port_);
  client.send(with_token("POST /greet", "Content-Length: 14\r\n") + R"({"name":)");
  usleep(50'000);
  revoke();
  client.send(R"("ann"})");
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 401 "));
}

TEST_F(RecheckTest, AStreamedBodyIsNotTakenFurther) {
  Client client(port_);
  client.send(with_token("POST /count", "Content-Length: 8\r\n") + "half");
  usleep(10'000);
  revoke();
  client.send("half");
  const std::string answer = client.response();  // none: it was cut by the timer before that
  EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 401 ")) << answer;
}

TEST_F(RecheckTest, ARequestWhoseHandlerRunsIsAnswered) {
  Client client(port_);
  const int before = begun_slow;
  client.send(with_token("GET /slow", ""));
  await_slow(before);
  revoke();
  EXPECT_TRUE(client.response().contains("\"done\""));
}

}  // namespace
}  // namespace caisson
