// TlsContext: a certificate with its chain and key, for the connections that are accepted with it. TLS 1.2 and 1.3, HTTP/1.1, no
// compression, no renegotiation, no client certificates; sessions are resumed by tickets alone, so no client takes memory for
// them.
#pragma once

#include <memory>
#include <string_view>

#include "launcher/common/base/result.h"

struct ssl_ctx_st;

namespace caisson::http {

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// PEM: the certificate first, then those that issued it; the key without a passphrase. Code::invalid_argument: they cannot be
// used together. No error contains anything of the texts.
[[nodiscard]] Result<TlsContext> tls_context(std::string_view certificates, std::string_view key);

}  // namespace caisson::http
