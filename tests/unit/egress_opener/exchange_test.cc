// One request and its answer, between a client and a server whose every byte is a test's.
#include "launcher/egress/opener/open_exchange.h"

#include "tests/unit/egress_opener/peer.h"

namespace caisson::egress {
namespace {

class ExchangeTest : public TlsTest {
 protected:
  void SetUp() override {
    TlsTest::SetUp();
    client_ = line(true), server_ = line(false);
  }
  void begin(std::uint64_t body, std::uint64_t bytes_per_second = 0) {
    OpenExchange::Asked asked;
    asked.text = "POST / HTTP/1.1\r\nHost: api.test\r\n\r\n";
    if (body > 0) asked.body = {BodyKind::length, body};
    head_ = asked.text.size();
    bytes_.emplace(bytes_per_second);
    exchange_.emplace(*client_.tls, *server_.tls, ahead_, asked, forms_, *bytes_);
    run_.emplace(exchange_->run(60'000'000));
  }
  OpenExchange::End answered(const std::string& text) {
    begin(0);
    server_.peer->write(text);
    server_.peer->move();
    until([&] { return run_->done(); });
    (void)client_.peer->read();
    (void)server_.peer->read();
    return run_->take();
  }
  Line client_, server_;
  std::string ahead_;
  std::size_t head_ = 0;
  const Forms forms_{{}};
  std::optional<ByteBudget> bytes_;
  std::optional<OpenExchange> exchange_;
  std::optional<Task<OpenExchange::End>> run_;
};

TEST_F(ExchangeTest, RecordsOfAByteLeaveTheLoopToOthers) {
  for (int i = 0; i < 1000; ++i) client_.peer->write("x");
  client_.peer->move();
  begin(1000);
  EXPECT_LT(exchange_->up(), head_ + 100);  // in one turn of the loop
  std::string got;
  until([&] { return (got += server_.peer->read()).size() == head_ + 1000; });
}

TEST_F(ExchangeTest, NoMoreGoesThanMayInASecond) {
  const std::string part(16384, 'x');
  begin(10 * part.size(), 1);
  int turns = 0;
  std::string got;
  until([&] {
    if (turns < 10) client_.peer->write(part), client_.peer->move();
    got += server_.peer->read();
    return ++turns == 40;
  });
  EXPECT_GE(got.size(), 32U * 1024);
  EXPECT_LE(got.size(), 64U * 1024);
}

TEST_F(ExchangeTest, AnswersThatCannotBeSearchedAreNone) {
  const std::string rest = "Content-Length: 2\r\n\r\nok";
  for (const std::string type :
       {"text/plain; charset=UTF-16", "text/plain;charset=\"utf-16le\"", "a/b; charset=utf-8; charset=utf-7",
        "text/html; charset=IBM037", "text/html; charset*=utf-32''x", "text/html; CHARSET = ucs-2"})
    EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\n" + rest), OpenExchange::End::bad_answer) << type;
  EXPECT_EQ(answered("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\n" + rest), OpenExchange::End::bad_answer);
  for (const std::string type :
       {"text/plain", "text/html; charset=UTF-8", "a/b;charset=\"iso-8859-1\"", "application/json; charset="}) {
    EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\n" + rest), OpenExchange::End::done) << type;
    EXPECT_TRUE(exchange_->goes_on());
  }
}

TEST_F(ExchangeTest, WhatFollowsAnAnswerWithoutABodyIsNoAnswer) {
  EXPECT_EQ(answered("HTTP/1.1 204 No Content\r\n\r\n"), OpenExchange::End::done);
  EXPECT_TRUE(exchange_->goes_on());
  EXPECT_EQ(answered("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), OpenExchange::End::done);
  EXPECT_FALSE(exchange_->goes_on());
}

}  // namespace
}  // namespace caisson::egress
