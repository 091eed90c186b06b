// The certificate authority of this launcher. It certifies the hosts that a secret is bound to, and its certificate says so:
// whoever trusts it trusts it for nothing else (RFC 5280 4.2.1.10). Its key follows from the seed, which caisson-gate has and no
// file.
#pragma once

#include <openssl/x509.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"
#include "launcher/egress/opener/authority_key.h"
#include "launcher/egress/opener/tls.h"

namespace caisson::egress {

class Authority {
 public:
  // seed: kSeedBytes; empty: a key that no other process has.
  [[nodiscard]] static Result<Authority> create(std::string_view seed);
  // Makes a certificate for these hosts, at least one, in canonical form. False: OpenSSL failed, and nothing has changed.
  [[nodiscard]] bool certify(std::set<std::string> hosts);
  [[nodiscard]] const std::set<std::string>& hosts() const { return hosts_; }
  [[nodiscard]] std::string pem() const;
  [[nodiscard]] std::string name_hash() const;  // by which OpenSSL finds it in a directory
  [[nodiscard]] bool certifies(const std::string& host) const { return hosts_.contains(host); }
  // What speaks for that host, with a certificate that is made once a day. nullptr: not one of its hosts, or OpenSSL failed.
  [[nodiscard]] SSL_CTX* context_for(const std::string& host, std::int64_t now_us);

 private:
  using Certificate = OpensslPtr<X509, X509_free>;
  struct Leaf {
    TlsContext context;
    std::int64_t made_us = 0;
  };
  [[nodiscard]] TlsContext make_leaf(const std::string& host) const;

  std::set<std::string> hosts_;
  AuthorityKey key_, leaf_key_;
  Certificate certificate_;
  std::map<std::string, Leaf> leaves_;
};

}  // namespace caisson::egress
