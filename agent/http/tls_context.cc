#include "agent/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <string>

#include "agent/http/openssl_ptr.h"

namespace caisson::http {
namespace {

constexpr int kMostIssuers = 16;
constexpr unsigned char kProtocol[] = "\x08http/1.1";

using PemText = OpensslPtr<BIO, BIO_free>;
using Certificate = OpensslPtr<X509, X509_free>;
using PrivateKey = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;

// A client that offers protocols, but not ours, is refused (RFC 7301, 3.2): it takes us for another server.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered, unsigned offered_size,
                    void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, size, kProtocol, sizeof kProtocol - 1, offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Without it OpenSSL asks a terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

std::unexpected<Error> unusable(std::string what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  if (reason != nullptr) what.append(" (").append(reason).append(")");
  ERR_clear_error();
  return caisson::fail(Code::invalid_argument, std::move(what));
}

PemText pem_text(std::string_view pem) { return PemText(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

bool is_pem_end() {
  const unsigned long error = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (end) ERR_clear_error();
  return end;
}

Status use_certificates(SSL_CTX* context, std::string_view pem) {
  const PemText text = pem_text(pem);
  const Certificate own(PEM_read_bio_X509(text.get(), nullptr, no_passphrase, nullptr));
  if (!own) return unusable("there is no certificate in PEM");
  if (SSL_CTX_use_certificate(context, own.get()) != 1) return unusable("the certificate cannot be used");
  for (int issuers = 0;; ++issuers) {
    Certificate issuer(PEM_read_bio_X509(text.get(), nullptr, no_passphrase, nullptr));
    if (!issuer) return is_pem_end() ? Status() : unusable("a certificate of the chain cannot be read");
    if (issuers == kMostIssuers) return unusable("the chain has more than 16 certificates");
    if (SSL_CTX_add0_chain_cert(context, issuer.get()) != 1) return unusable("a certificate of the chain cannot be used");
    (void)issuer.release();  // the context's now
  }
}

Status use_key(SSL_CTX* context, std::string_view pem) {
  const PemText text = pem_text(pem);
  const PrivateKey key(PEM_read_bio_PrivateKey(text.get(), nullptr, no_passphrase, nullptr));
  if (!key) return unusable("there is no private key in PEM without a passphrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return unusable("the key is not that of the certificate");
  return {};
}

}  // namespace

Result<TlsContext> tls_context(std::string_view certificates, std::string_view key) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return unusable("OpenSSL makes no context");
  SSL_CTX* const raw = context.get();
  if (SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) != 1) return unusable("OpenSSL knows no TLS 1.2");
  // The system's configuration may be stricter, but not more lenient.
  SSL_CTX_set_security_level(raw, std::max(2, SSL_CTX_get_security_level(raw)));
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Buffers of idle connections are released. A write may be repeated from another place in memory.
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  TRY(use_certificates(raw, certificates));
  TRY(use_key(raw, key));
  return context;
}

}  // namespace caisson::http
