#include "launcher/egress/opener/tls.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace caisson::egress {
namespace {

constexpr unsigned char kProtocol[] = "\x08http/1.1";
constexpr std::size_t kPart = 16 * 1024;
// A handshake has about ten, and what follows it, tickets and new keys, is rare: RFC 8446 5.5 asks for keys after 2^24 records.
constexpr unsigned kMostMessages = 64;

// A client that offers protocols, but not ours, is refused (RFC 7301 3.2).
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered, unsigned offered_size,
                    void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, size, kProtocol, sizeof kProtocol - 1, offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void count_message(int sent, int, int type, const void*, std::size_t, SSL*, void* messages) {
  if (sent == 0 && type == SSL3_RT_HANDSHAKE) ++*static_cast<unsigned*>(messages);
}

}  // namespace

TlsContext tls_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) return nullptr;
  SSL_CTX_set_security_level(context.get(), std::max(2, SSL_CTX_get_security_level(context.get())));
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  if (SSL_CTX_set_alpn_protos(context.get(), kProtocol, sizeof kProtocol - 1) != 0) return nullptr;
  return context;
}

Tls::Tls(Stream& stream, SSL_CTX& context, std::string_view ahead) : stream_(stream), ssl_(SSL_new(&context)) {
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  if (!ssl_ || in == nullptr || out == nullptr ||
      (!ahead.empty() && BIO_write(in, ahead.data(), static_cast<int>(ahead.size())) <= 0)) {
    BIO_free(in);
    BIO_free(out);
    ssl_.reset();
    return;
  }
  // An empty one means "not yet", never the end.
  BIO_set_mem_eof_return(in, -1);
  SSL_set_bio(ssl_.get(), in, out);
  SSL_set_msg_callback(ssl_.get(), count_message);
  SSL_set_msg_callback_arg(ssl_.get(), &messages_);
}

// OpenSSL takes messages of the handshake without end and answers them in memory: a peer that sends nothing else would hold the
// loop, and all other connections, for as long as it sends.
bool Tls::floods() const { return messages_ > kMostMessages; }

Tls::Fill Tls::fill() {
  static std::array<char, kPart> buffer;  // encrypted
  const ssize_t got = stream_.read(buffer);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Fill::none : Fill::end;
  if (got == 0) return Fill::end;
  return BIO_write(SSL_get_rbio(ssl_.get()), buffer.data(), static_cast<int>(got)) == got ? Fill::some : Fill::end;
}

bool Tls::flush() {
  BIO* const made = SSL_get_wbio(ssl_.get());
  if (const std::size_t size = BIO_ctrl_pending(made); size > 0) {
    const std::size_t at = out_.size();
    out_.resize(at + size);
    if (BIO_read(made, out_.data() + at, static_cast<int>(size)) != static_cast<int>(size)) return errno = EPIPE, false;
  }
  while (!out_.empty()) {
    const ssize_t sent = stream_.write(out_);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno = errno == EAGAIN ? EAGAIN : EPIPE, false;
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

Task<bool> Tls::handshake(std::int64_t deadline_us) {
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const int error = SSL_get_error(ssl_.get(), done);
    const bool flushed = flush();
    if (floods() || (!flushed && errno != EAGAIN)) co_return false;
    if (done == 1 && flushed) co_return true;
    if (done != 1 && error != SSL_ERROR_WANT_READ) co_return false;
    if (flushed) {
      const Fill filled = fill();
      if (filled == Fill::end) co_return false;
      if (filled == Fill::some) continue;
    }
    const bool stirred = co_await Stirred(deadline_us, stream_);
    if (!stirred) co_return false;
  }
}

ssize_t Tls::read(std::span<char> into) {
  for (;;) {
    if (ended_) return 0;
    ERR_clear_error();
    std::size_t got = 0;
    const int done = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
    if (done == 1) return static_cast<ssize_t>(got);
    const int error = SSL_get_error(ssl_.get(), done);
    if (floods()) return errno = EPROTO, -1;
    if (error == SSL_ERROR_ZERO_RETURN) return ended_ = true, 0;
    if (error != SSL_ERROR_WANT_READ) return errno = EPROTO, -1;
    switch (fill()) {
      case Fill::some:
        break;
      case Fill::none:
        return errno = EAGAIN, -1;
      case Fill::end:  // without its word: whoever reads knows by the framing whether something is missing
        ended_ = true;
        break;
    }
  }
}

ssize_t Tls::write(std::string_view bytes) {
  if (!flush()) return -1;
  if (bytes.empty()) return 0;
  ERR_clear_error();
  std::size_t sent = 0;
  if (SSL_write_ex(ssl_.get(), bytes.data(), std::min(bytes.size(), kPart), &sent) != 1) return errno = EPIPE, -1;
  if (!flush() && errno != EAGAIN) return -1;
  return static_cast<ssize_t>(sent);
}

void Tls::close() {
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_.get()) != 0) (void)SSL_shutdown(ssl_.get());
  (void)flush();
}

}  // namespace caisson::egress
