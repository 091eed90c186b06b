#include "launcher/egress/opener/trust.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "launcher/common/egress/trust.h"
#include "launcher/egress/list/host.h"

namespace caisson::egress {
Result<Trust> Trust::load() {
  Trust made;
  made.context_ = tls_context(TLS_client_method());
  if (!made.context_) return fail(Code::internal, "OpenSSL makes no context");
  std::size_t read = SSL_CTX_load_verify_file(made.context_.get(), kSystemAuthorities) == 1 ? 1 : 0;
  for (const std::string& file : operators_authorities()) {
    if (SSL_CTX_load_verify_file(made.context_.get(), file.c_str()) != 1)
      return fail(Code::invalid_argument, file + " has no certificates in PEM");
    ++read;
  }
  ERR_clear_error();
  if (read == 0)
    return fail(Code::invalid_argument,
                std::string("no authority is trusted: ") + kSystemAuthorities + " and " + kOperatorsAuthorities + " have none");
  SSL_CTX_set_verify(made.context_.get(), SSL_VERIFY_PEER, nullptr);
  return made;
}

std::unique_ptr<Tls> Trust::connect(Stream& stream, const std::string& host) const {
  auto tls = std::make_unique<Tls>(stream, *context_);
  SSL* const ssl = tls->ssl();
  if (ssl == nullptr) return nullptr;
  SSL_set_connect_state(ssl);
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // The certificate must name the host: otherwise any that an authority has signed would do. Server names are not addresses (RFC
  // 6066 3).
  const auto read = read_host(host);
  const bool set = read && std::holds_alternative<Address>(*read)
                       ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1
                       : SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 && SSL_set1_host(ssl, host.c_str()) == 1;
  return set ? std::move(tls) : nullptr;
}

}  // namespace caisson::egress
