// The certificate authority of this launcher. It certifies the hosts whose TLS is opened, and its certificate says so: whoever
// trusts it trusts it for these and what is below them (RFC 5280 4.2.1.10), and for nothing else. Its key follows from the seed,
// which caisson-gate has and no file.
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
  // Makes a certificate for these hosts, at least one: canonical names, or "*.example.org" for those below one. Those
  // that do not fit (kMaxOpenedBytes) are not certified. False: OpenSSL failed, and nothing has changed.
  [[nodiscard]] bool certify(std::set<std::string> hosts);
  [[nodiscard]] const std::set<std::string>& hosts() const { return hosts_; }
  [[nodiscard]] std::string pem() const;
  [[nodiscard]] std::string name_hash() const;  // by which OpenSSL finds it in a directory
  [[nodiscard]] bool certifies(const std::string& host) const;
  [[nodiscard]] std::size_t leaves() const { return leaves_.size(); }
  // What speaks for that host until the next one is asked for, with a certificate that is made once a day. nullptr: not one of
  // its hosts, or OpenSSL failed.
  [[nodiscard]] SSL_CTX* context_for(const std::string& host, std::int64_t now_us);

 private:
  using Certificate = OpensslPtr<X509, X509_free>;
  struct Leaf {
    TlsContext context;
    std::int64_t made_us = 0, used_us = 0;
  };
  [[nodiscard]] TlsContext make_leaf(const std::string& host) const;

  std::set<std::string> hosts_, named_;  // and those of them that fit into the certificate
  AuthorityKey key_, leaf_key_;
  Certificate certificate_;
  std::map<std::string, Leaf> leaves_;  // at most kMostLeaves: a session may ask for any name below a suffix
};

}  // namespace caisson::egress
