// The certificate authority of one workspace. It certifies the hosts that a secret is bound to, and its certificate says so:
// whoever trusts it trusts it for nothing else (RFC 5280 4.2.1.10). Its key is in this process's memory and nowhere else.
#pragma once

#include <openssl/x509.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "launcher/common/base/result.h"
#include "launcher/egress/opener/tls.h"

namespace caisson::egress {

class Authority {
 public:
  // hosts: names in canonical form, at least one.
  [[nodiscard]] static Result<Authority> create(const std::set<std::string>& hosts);
  [[nodiscard]] std::string pem() const;
  [[nodiscard]] bool certifies(const std::string& host) const { return hosts_.contains(host); }
  // What speaks for that host, with a certificate that is made once a day. nullptr: not one of its hosts, or OpenSSL failed.
  [[nodiscard]] SSL_CTX* context_for(const std::string& host, std::int64_t now_us);

 private:
  using Key = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;
  using Certificate = OpensslPtr<X509, X509_free>;
  struct Leaf {
    TlsContext context;
    std::int64_t made_us = 0;
  };
  [[nodiscard]] TlsContext make_leaf(const std::string& host) const;

  std::set<std::string> hosts_;
  Key key_, leaf_key_;
  Certificate certificate_;
  std::map<std::string, Leaf> leaves_;
};

}  // namespace caisson::egress
