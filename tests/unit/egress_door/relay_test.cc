// Relays and messages over socket pairs, where a test says what each write takes.
#include "launcher/egress/door/relay.h"

#include "launcher/egress/door/exchange.h"
#include "launcher/egress/door/kept.h"
#include "launcher/egress/door/transfer.h"
#include "tests/unit/egress_door/pair.h"

namespace caisson::egress {
namespace {

class RelayTest : public PollTest {
 protected:
  void begin(std::uint64_t per_second = 0, std::int64_t idle_us = 10'000'000, std::string first = {}) {
    auto [a, b] = pair();
    auto [c, d] = pair();
    client_ = std::move(a), server_ = std::move(d);
    bytes_ = std::make_unique<ByteBudget>(per_second);
    inner_ = std::make_unique<Stream>(*poll_, std::move(b)), outer_ = std::make_unique<Stream>(*poll_, std::move(c));
    relay_ = std::make_unique<Relay>(*inner_, *outer_, std::move(first), Relay::Shared{pipes_, *bytes_}, idle_us,
                                     [this](Relay::End end) { ended_ = end; });
    relay_->begin();
  }
  ~RelayTest() override { relay_.reset(); }
  Pipes pipes_;
  std::unique_ptr<ByteBudget> bytes_;
  Fd client_, server_;
  std::unique_ptr<Stream> inner_, outer_;
  std::unique_ptr<Relay> relay_;
  std::optional<Relay::End> ended_;
};

TEST_F(RelayTest, WhatWasReadAlreadyGoesFirst) {
  begin(0, 10'000'000, "first ");
  say(client_, "then");
  std::string got;
  until([&] { return (got += read_now(server_)).size() == 10; });
  EXPECT_EQ(got, "first then");
}

TEST_F(RelayTest, BothEndsAreNeededForTheEnd) {
  begin();
  ::shutdown(client_.get(), SHUT_WR);
  until([&] { return at_end(server_); });
  EXPECT_FALSE(ended_);
  say(server_, "later");
  std::string got;
  until([&] { return (got += read_now(client_)) == "later"; });
  server_.reset();
  until([&] { return ended_.has_value(); });
  EXPECT_EQ(*ended_, Relay::End::done);
  EXPECT_EQ(relay_->down(), 5U);
}

TEST_F(RelayTest, NothingIsLostWhereNothingIsTakenForAWhile) {
  begin();
  std::string sent, got;
  for (int i = 0; i < 4'000'000; ++i) sent += static_cast<char>(i * 31 + i / 251);
  std::size_t at = 0;
  const auto push = [&] {
    const ssize_t n = ::send(client_.get(), sent.data() + at, sent.size() - at, MSG_DONTWAIT);
    if (n > 0) at += static_cast<std::size_t>(n);
    return n < 0;
  };
  int full = 0;
  until([&] { return push() && ++full > 20; });  // both sockets and whatever the relay keeps are full
  ASSERT_LT(at, 1'000'000U) << "the relay keeps more than a buffer";
  until([&] {
    push();
    got += read_now(server_, 50'000);
    return got.size() == sent.size();
  });
  EXPECT_TRUE(got == sent);
}

TEST_F(RelayTest, ManyBytesGoThroughAPipeThatIsGivenBack) {
  begin();
  const std::string block(10'000, 'b');
  std::size_t sent = 0, got = 0;
  until([&] {
    for (ssize_t n = 1; n > 0 && sent < Relay::kCopyFirst + 200'000; sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
      n = ::send(client_.get(), block.data(), block.size(), MSG_DONTWAIT);
    got += read_now(server_).size();
    return got >= Relay::kCopyFirst + 200'000 && got == sent;
  });
  say(client_, "x");
  until([&] { return read_now(server_) == "x"; });
  Pipe kept = pipes_.take();
  char byte = 0;
  EXPECT_EQ(::read(kept.out.get(), &byte, 1), -1) << "what is in a pipe would reach another connection";
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(RelayTest, ABudgetIsKept) {
  begin(400'000);
  const std::string block(50'000, 'b');
  std::size_t sent = 0, got = 0;
  const std::int64_t begin_us = sys::monotonic_us();
  until([&] {
    for (ssize_t n = 1; n > 0 && sent < 300'000; sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
      n = ::send(client_.get(), block.data(), block.size(), MSG_DONTWAIT);
    got += read_now(server_).size();
    return got >= 300'000;
  });
  EXPECT_GE(sys::monotonic_us() - begin_us, 450'000);  // 100,000 at once, the rest at 400,000 a second
}

TEST_F(RelayTest, NothingForTooLongIsTheEndAndSomethingIsNot) {
  begin(0, 300'000);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t next_us = sys::monotonic_us() + 150'000;
    until([&] { return sys::monotonic_us() > next_us; });
    ASSERT_FALSE(ended_);
    say(client_, "x");
  }
  until([&] { return ended_.has_value(); });
  EXPECT_EQ(*ended_, Relay::End::idle);
}

class TransferTest : public PollTest {
 protected:
  void SetUp() override {
    PollTest::SetUp();
    auto [a, b] = pair();
    auto [c, d] = pair();
    sender_ = std::move(a), receiver_ = std::move(d);
    from_ = std::make_unique<Stream>(*poll_, std::move(b)), to_ = std::make_unique<Stream>(*poll_, std::move(c));
    transfer_ = std::make_unique<Transfer>(*from_, *to_, ahead_, bytes_);
    watch(*from_);
  }
  ByteBudget bytes_{0};
  std::string ahead_;
  Fd sender_, receiver_;
  std::unique_ptr<Stream> from_, to_;
  std::unique_ptr<Transfer> transfer_;
  Transfer::Step step_until_blocked() {
    for (;;)
      if (const auto step = transfer_->step(); step != Transfer::Step::moved) return step;
  }
};

TEST_F(TransferTest, TakesItsBodyAndLeavesTheNextMessage) {
  transfer_->put("head ");
  transfer_->set_body({.kind = BodyKind::length, .length = 4});
  say(sender_, "bodynext message");
  EXPECT_EQ(step_until_blocked(), Transfer::Step::blocked);
  EXPECT_TRUE(transfer_->done());
  EXPECT_EQ(read_now(receiver_), "head body");
  EXPECT_EQ(ahead_, "next message");
}

TEST_F(TransferTest, AnEndBeforeTheEndIsNone) {
  transfer_->set_body({.kind = BodyKind::chunked});
  say(sender_, "5\r\nabc");
  sender_.reset();
  until([&] { return from_->hung_up(); });
  EXPECT_EQ(step_until_blocked(), Transfer::Step::sender_gone);
  EXPECT_FALSE(transfer_->done());
}

TEST_F(TransferTest, ABodyWithoutALengthEndsWithItsConnection) {
  transfer_->set_body({.kind = BodyKind::until_close});
  say(sender_, "all of it");
  EXPECT_EQ(step_until_blocked(), Transfer::Step::blocked);
  EXPECT_FALSE(transfer_->done());
  sender_.reset();
  until([&] { return from_->hung_up(); });
  (void)step_until_blocked();
  EXPECT_TRUE(transfer_->done());
  EXPECT_EQ(read_now(receiver_), "all of it");
}

TEST_F(TransferTest, MalformedChunksAreNotSentOn) {
  transfer_->set_body({.kind = BodyKind::chunked});
  say(sender_, "zz\r\nabc");
  EXPECT_EQ(step_until_blocked(), Transfer::Step::wrong);
  EXPECT_EQ(read_now(receiver_), "");
}

TEST_F(RelayTest, AKeptConnectionThatSaidSomethingIsNotUsedAgain) {
  std::size_t total = 0;
  Kept kept(*poll_, total, 2);
  const Host host = Name{"api.test"};
  const auto list = std::make_shared<const List>(), other = std::make_shared<const List>();
  const auto keep = [&](const std::shared_ptr<const List>& by) {
    auto [ours, theirs] = pair();
    Kept::One one;
    one.stream = std::make_unique<Stream>(*poll_, std::move(ours));
    one.host = host, one.port = 80, one.by = by;
    kept.keep(std::move(one));
    return std::move(theirs);
  };
  const Fd silent = keep(list);
  EXPECT_FALSE(kept.take(host, 81, list));
  EXPECT_FALSE(kept.take(Name{"other.test"}, 80, list));
  EXPECT_TRUE(kept.take(host, 80, list));
  EXPECT_FALSE(kept.take(host, 80, list)) << "it was taken";
  const Fd talks = keep(list);
  say(talks, "HTTP/1.1 200 OK\r\n");
  EXPECT_FALSE(kept.take(host, 80, list));
  (void)keep(list);  // closed at once
  EXPECT_FALSE(kept.take(host, 80, list));
  EXPECT_EQ(total, 0U);
  const Fd one = keep(list), two = keep(list), three = keep(list);
  EXPECT_TRUE(at_end(three)) << "others need the descriptor";
  EXPECT_TRUE(kept.take(host, 80, list) && kept.take(host, 80, list));
  const Fd older = keep(list);
  EXPECT_FALSE(kept.take(host, 80, other)) << "another list may not permit it";
}

TEST(ExchangeText, NothingOfTheClientsConnectionIsSentOn) {
  RequestHead head;
  HeadScan scan;
  const std::string bytes =
      "POST http://API.test:8080/x?y HTTP/1.1\r\nHost: api.test:8080\r\nProxy-Authorization: Basic c2VjcmV0\r\nTE: "
      "trailers\r\nConnection: close, X-Mine\r\n"
      "X-Mine: 1\r\nTransfer-Encoding: chunked\r\nCookie: a=b\r\nUpgrade: h2c\r\n\r\n";
  ASSERT_TRUE(read_request_head(bytes, scan, head).done());
  EXPECT_EQ(request_text(head, {*head.host, head.port}, false),
            "POST /x?y HTTP/1.1\r\nHost: api.test:8080\r\nCookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(ExchangeText, AnAnswerSaysWhetherItsConnectionStays) {
  AnswerHead head;
  HeadScan scan;
  const std::string bytes = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\n";
  ASSERT_TRUE(read_answer_head(bytes, false, scan, head).done());
  EXPECT_EQ(answer_text(head, 1, true), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(answer_text(head, 0, true), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(answer_text(head, 1, false), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace caisson::egress
