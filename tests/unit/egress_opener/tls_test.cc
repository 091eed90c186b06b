// Peers that keep TLS busy without saying anything.
#include "launcher/egress/opener/tls.h"

#include <array>
#include <cerrno>

#include "tests/unit/egress_opener/peer.h"

namespace caisson::egress {
namespace {

void update_keys(Peer& peer, int times) {
  for (int i = 0; i < times; ++i) {
    ASSERT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(peer.ssl()), 1);
  }
}

TEST_F(TlsTest, ItIsReadAndWritten) {
  for (const bool server : {true, false}) {
    const Line one = line(server);
    one.peer->write("from there");
    one.peer->move();
    std::array<char, 64> got;
    EXPECT_EQ(one.tls->read(got), 10);
    EXPECT_EQ(one.tls->write("from here"), 9);
    EXPECT_EQ(one.peer->read(), "from here");
  }
}

TEST_F(TlsTest, NewKeysAreTakenButNotWithoutEnd) {
  const Line one = line(true);
  std::array<char, 64> got;
  update_keys(*one.peer, 8);
  one.peer->write("after them");
  one.peer->move();
  EXPECT_EQ(one.tls->read(got), 10);
  update_keys(*one.peer, 100);
  one.peer->move();
  EXPECT_EQ(one.tls->read(got), -1);
  EXPECT_EQ(errno, EPROTO);
}

TEST_F(TlsTest, TicketsAreNotTakenWithoutEnd) {
  SSL_CTX_clear_options(server_context_, SSL_OP_NO_TICKET);
  const Line one = line(false);
  std::array<char, 64> got;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(SSL_new_session_ticket(one.peer->ssl()), 1);
    ASSERT_EQ(SSL_do_handshake(one.peer->ssl()), 1);
  }
  one.peer->move();
  EXPECT_EQ(one.tls->read(got), -1);
  EXPECT_EQ(errno, EPROTO);
}

// OpenSSL passes them over while it waits for the server's hello.
TEST_F(TlsTest, RequestsForAHelloAreNotTakenWithoutEnd) {
  auto [ours, theirs] = pair();
  Stream stream(*poll_, std::move(ours));
  Tls tls(stream, *client_context_);
  SSL_set_connect_state(tls.ssl());
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += std::string("\x16\x03\x03\x00\x04\x00\x00\x00\x00", 9);
  say(theirs, requests);
  Task<bool> done = tls.handshake(sys::monotonic_us() + 60'000'000);
  ASSERT_TRUE(done.done());
  EXPECT_FALSE(done.take());
}

}  // namespace
}  // namespace caisson::egress
