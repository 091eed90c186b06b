// One end of TLS over a Stream, through memory: OpenSSL sees no descriptor, and reading and writing never wait.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "launcher/common/base/task.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

template <auto free>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
template <class T, auto free>
using OpensslPtr = std::unique_ptr<T, OpensslFree<free>>;
using TlsContext = OpensslPtr<SSL_CTX, SSL_CTX_free>;

// What both ends have in common: TLS 1.2 and up, HTTP/1.1 alone, no session that outlives its connection. nullptr: OpenSSL has
// no memory.
[[nodiscard]] TlsContext tls_context(const SSL_METHOD* method);

class Tls {
 public:
  // `ahead`: what was read of the stream before.
  Tls(Stream& stream, SSL_CTX& context, std::string_view ahead = {});
  Tls(const Tls&) = delete;  // OpenSSL has an address of its
  Tls& operator=(const Tls&) = delete;
  [[nodiscard]] SSL* ssl() const { return ssl_.get(); }  // nullptr: OpenSSL has no memory
  [[nodiscard]] Stream& stream() const { return stream_; }

  // After SSL_set_accept_state() or SSL_set_connect_state(). False: it failed, or time is over; the peer was told why.
  [[nodiscard]] Task<bool> handshake(std::int64_t deadline_us);
  // As recv(2): 0 at the end, which the peer may have said or not; -1 with EAGAIN, or EPROTO.
  [[nodiscard]] ssize_t read(std::span<char> into);
  // How much of it was taken; -1 with EAGAIN while earlier bytes wait for the stream, or EPIPE.
  [[nodiscard]] ssize_t write(std::string_view bytes);
  // Whether all that was written is the stream's. False with EAGAIN or EPIPE.
  [[nodiscard]] bool flush();
  void close();  // says the end, if the stream takes it

 private:
  enum class Fill { some, none, end };
  Fill fill();
  [[nodiscard]] bool floods() const;

  Stream& stream_;
  unsigned messages_ = 0;  // of handshakes, that have come
  OpensslPtr<SSL, SSL_free> ssl_;
  std::string out_;  // of the stream's, and not taken by it
  bool ended_ = false;
};

}  // namespace caisson::egress
