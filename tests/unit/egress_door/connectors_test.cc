// The door and a connector, which the test plays, as it plays launcher and dialer.
#include <netinet/in.h>
#include <sys/mman.h>

#include <cstring>
#include <set>

#include "launcher/common/base/scm.h"
#include "launcher/common/egress/connector.h"
#include "launcher/egress/door/door.h"
#include "tests/unit/egress_door/pair.h"

namespace caisson::egress {
namespace {

constexpr std::uint16_t kPort = 2222;

class ConnectorsTest : public PollTest {
 protected:
  void SetUp() override {
    PollTest::SetUp();
    auto [launcher, theirs] = pair(SOCK_SEQPACKET);
    launcher_ = std::move(launcher);
    door_ = std::make_unique<Door>(*poll_, std::move(theirs), 100);
    List list;
    list.rules.push_back(
        {.address = Address{.bytes = {93, 184, 216, 34}}, .prefix = 32, .ports = {{kPort, kPort}}, .why = "a test"});
    list.limits.connections = 2;
    const std::string bytes = list_bytes(list);
    const Fd file(::memfd_create("list", MFD_CLOEXEC)), listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    say(file, "bash\n" + std::to_string(bytes.size()) + "\n" + bytes);
    ASSERT_EQ(::listen(listener.get(), 64), 0);
    order(Order::open, {file.get(), listener.get()});
    auto [dialer, dialer_end] = pair(SOCK_SEQPACKET);
    dialer_ = std::move(dialer);
    order(Order::peer, {dialer_end.get()}, {}, 0);
    auto [connector, connector_end] = pair(SOCK_SEQPACKET);
    connector_ = std::move(connector);
    order(Order::connector, {connector_end.get()}, "session bash");
  }
  void order(Order what, const std::vector<int>& fds, std::string_view text = {}, std::uint64_t workspace = 1) {
    const std::string message = message_of(OrderHead{what, 1, workspace}, text);
    ASSERT_EQ(scm::send(launcher_.get(), message.data(), message.size(), fds.data(), fds.size()), std::ssize(message));
  }
  void ask(Wish wish, std::uint16_t from) const {
    const Ask message{.wish = wish, .id = from, .from = from, .port = kPort, .waits = 1, .address = {93, 184, 216, 34}};
    say(connector_, {reinterpret_cast<const char*>(&message), sizeof message});
  }
  Reply next_reply() {
    Reply out{};
    until([&] {
      const std::string text = read_now(connector_);
      if (text.size() == sizeof out) std::memcpy(&out, text.data(), sizeof out);
      return !text.empty();
    });
    return out;
  }
  std::uint32_t next_dial() {
    DialRequest out{};
    until([&] {
      const std::string text = read_now(dialer_);
      if (text.size() > sizeof out) std::memcpy(&out, text.data(), sizeof out);
      return !text.empty();
    });
    return out.id;
  }
  Fd launcher_, dialer_, connector_;
  std::unique_ptr<Door> door_;
};

TEST_F(ConnectorsTest, WhatIsBeingDialedCountsAsAConnection) {
  for (std::uint16_t from = 1; from <= 3; ++from) ask(Wish::connect, from);
  const std::set<std::uint32_t> dials{next_dial(), next_dial()};
  const Reply refused = next_reply();
  EXPECT_TRUE(refused.id == 3 && refused.error == ECONNREFUSED) << refused.id << " " << refused.error;
  const DialAnswer failed{.id = *dials.begin(), .error = ETIMEDOUT, .rule = 0};
  say(dialer_, {reinterpret_cast<const char*>(&failed), sizeof failed});
  EXPECT_EQ(next_reply().error, ETIMEDOUT);
  ask(Wish::connect, 4);
  const DialAnswer made{.id = next_dial(), .rule = 0};
  auto [ours, theirs] = pair();
  const int fd = theirs.get();
  ASSERT_EQ(scm::send(dialer_.get(), &made, sizeof made, &fd, 1), static_cast<ssize_t>(sizeof made));
  const Reply named = next_reply();
  EXPECT_TRUE(named.id == 4 && named.error == 0) << named.id << " " << named.error;
  ask(Wish::connect, 5);
  EXPECT_EQ(next_reply().error, ECONNREFUSED);
  ask(Wish::withdraw, 4);
  ask(Wish::connect, 6);
  (void)next_dial();
}

}  // namespace
}  // namespace caisson::egress
