// The other end of a Tls: OpenSSL over a socket pair, which sends when a test says so, and all of it at once.
#pragma once

#include <openssl/ssl.h>

#include <optional>
#include <string>

#include "launcher/egress/opener/authority.h"
#include "launcher/egress/opener/tls.h"
#include "tests/unit/egress_door/pair.h"

namespace caisson::egress {

class Peer {
 public:
  Peer(Fd fd, SSL_CTX& context, bool server) : fd_(std::move(fd)), ssl_(SSL_new(&context)) {
    SSL_set_bio(ssl(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    BIO_set_mem_eof_return(SSL_get_rbio(ssl()), -1);
    server ? SSL_set_accept_state(ssl()) : SSL_set_connect_state(ssl());
  }
  [[nodiscard]] SSL* ssl() const { return ssl_.get(); }
  [[nodiscard]] const Fd& fd() const { return fd_; }
  // Says what it has to say, and takes what has come.
  void move() {
    std::string out(BIO_ctrl_pending(SSL_get_wbio(ssl())), '\0');
    if (!out.empty()) EXPECT_EQ(BIO_read(SSL_get_wbio(ssl()), out.data(), static_cast<int>(out.size())), std::ssize(out));
    if (!out.empty()) EXPECT_EQ(::send(fd_.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT), std::ssize(out));
    char in[16384];
    for (ssize_t got; (got = ::recv(fd_.get(), in, sizeof in, MSG_DONTWAIT)) > 0;)
      EXPECT_EQ(BIO_write(SSL_get_rbio(ssl()), in, static_cast<int>(got)), got);
  }
  bool shake_hands() {
    const bool done = SSL_do_handshake(ssl()) == 1;
    move();
    return done;
  }
  void write(std::string_view text) { EXPECT_EQ(SSL_write(ssl(), text.data(), static_cast<int>(text.size())), std::ssize(text)); }
  // All that has come.
  std::string read() {
    move();
    char in[16384];
    std::string out;
    for (int got; (got = SSL_read(ssl(), in, sizeof in)) > 0;) out.append(in, static_cast<std::size_t>(got));
    return out;
  }

 private:
  Fd fd_;
  OpensslPtr<SSL, SSL_free> ssl_;
};

class TlsTest : public PollTest {
 protected:
  void SetUp() override {
    PollTest::SetUp();
    auto made = Authority::create("");
    ASSERT_TRUE(made && made->certify({"api.test"}));
    authority_ = std::move(*made);
    client_context_ = tls_context(TLS_client_method());
    server_context_ = authority_->context_for("api.test", 1);
    ASSERT_TRUE(client_context_ && server_context_ != nullptr);
  }
  // A Tls, and what talks to it, after their handshake.
  struct Line {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Tls> tls;
    std::unique_ptr<Peer> peer;
  };
  Line line(bool server) {
    auto [ours, theirs] = pair();
    SSL_CTX &own = server ? *server_context_ : *client_context_, &other = server ? *client_context_ : *server_context_;
    Line out;
    out.stream = std::make_unique<Stream>(*poll_, std::move(ours));
    out.tls = std::make_unique<Tls>(*out.stream, own);
    out.peer = std::make_unique<Peer>(std::move(theirs), other, !server);
    server ? SSL_set_accept_state(out.tls->ssl()) : SSL_set_connect_state(out.tls->ssl());
    const Task<bool> done = out.tls->handshake(sys::monotonic_us() + 60'000'000);
    until([&] { return out.peer->shake_hands() && done.done(); });
    return out;
  }
  std::optional<Authority> authority_;
  TlsContext client_context_;
  SSL_CTX* server_context_ = nullptr;
};

}  // namespace caisson::egress
