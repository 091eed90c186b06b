#include "launcher/egress/opener/authority.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "launcher/egress/list/list.h"

namespace caisson::egress {
namespace {

constexpr std::int64_t kDayUs = 86'400'000'000;
constexpr long kHour = 3'600, kDay = 24 * kHour;
constexpr long kAuthorityDays = 3650;  // as long as a launcher may run
constexpr std::size_t kMostLeaves = 256;

bool add_extension(X509* to, X509* issuer, int which, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const OpensslPtr<X509_EXTENSION, X509_EXTENSION_free> made(X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str()));
  return made && X509_add_ext(to, made.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 1);  // positive, and of full length
  const OpensslPtr<BIGNUM, BN_free> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// What authority and leaf have in common. The clock of a client may go a little wrong.
bool fill(X509* certificate, EVP_PKEY* key, const std::string& name, long seconds) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kHour) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), seconds) != nullptr && X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                    0) == 1;
}

// Two authorities of one name would be taken for one where both are trusted: it has the beginning of its key's digest.
std::string authority_name(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  if (X509_pubkey_digest(certificate, EVP_sha256(), digest, nullptr) != 1) return {};
  std::string out = "Caisson ";
  for (const unsigned char byte : std::span(digest).first<4>())
    (out += "0123456789abcdef"[byte >> 4]) += "0123456789abcdef"[byte & 15];
  return out;
}

// "example.org" permits that name and what is below it: nothing narrower is in RFC 5280 4.2.1.10. OpenSSL and Go would leave out
// the name itself where it has a dot before it, but a client that goes by the RFC may then take nothing for permitted. The name
// itself is not certified all the same (certifies()).
std::string constraint_of(const std::string& host) { return host.starts_with("*.") ? host.substr(2) : host; }

}  // namespace

Result<Authority> Authority::create(std::string_view seed) {
  ERR_clear_error();
  Authority made;
  made.key_ = seed.empty() ? new_key() : key_of(seed);
  made.leaf_key_ = new_key();
  if (!made.key_ || !made.leaf_key_) return fail(Code::internal, "OpenSSL makes no key");
  return made;
}

bool Authority::certify(std::set<std::string> hosts) {
  ERR_clear_error();
  Certificate made(X509_new());
  X509* const certificate = made.get();
  std::string constraints;
  std::set<std::string> named;
  std::size_t left = kMaxOpenedBytes;
  for (const std::string& host : hosts) {
    if (host.size() + kAroundName > left) continue;
    left -= host.size() + kAroundName;
    constraints += (constraints.empty() ? "" : ",") + ("permitted;DNS:" + constraint_of(host));
    named.insert(host);
  }
  // Names alone leave addresses permitted, all of them (RFC 5280 4.2.1.10).
  constraints += ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0";
  const bool done = certificate != nullptr && X509_set_pubkey(certificate, key_.get()) == 1 &&
                    fill(certificate, key_.get(), authority_name(certificate), kAuthorityDays * kDay) &&
                    X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
                    add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign") &&
                    add_extension(certificate, certificate, NID_subject_key_identifier, "hash") &&
                    add_extension(certificate, certificate, NID_name_constraints, "critical," + constraints) &&
                    X509_sign(certificate, key_.get(), EVP_sha256()) > 0;
  if (!done) return false;
  certificate_ = std::move(made);
  hosts_ = std::move(hosts), named_ = std::move(named);
  return true;
}

std::string Authority::name_hash() const {
  char out[9];
  (void)std::snprintf(out, sizeof out, "%08lx", X509_subject_name_hash(certificate_.get()) & 0xffffffffUL);
  return out;
}

std::string Authority::pem() const {
  const OpensslPtr<BIO, BIO_free> out(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (!out || PEM_write_bio_X509(out.get(), certificate_.get()) != 1) return {};
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

TlsContext Authority::make_leaf(const std::string& host) const {
  ERR_clear_error();
  const Certificate leaf(X509_new());
  TlsContext context = tls_context(TLS_server_method());
  const bool done = leaf && context && fill(leaf.get(), leaf_key_.get(), host.size() <= 64 ? host : "caisson", 2 * kDay) &&
                    X509_set_issuer_name(leaf.get(), X509_get_subject_name(certificate_.get())) == 1 &&
                    add_extension(leaf.get(), certificate_.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(leaf.get(), certificate_.get(), NID_key_usage, "critical,digitalSignature") &&
                    add_extension(leaf.get(), certificate_.get(), NID_ext_key_usage, "serverAuth") &&
                    add_extension(leaf.get(), certificate_.get(), NID_authority_key_identifier, "keyid:always") &&
                    add_extension(leaf.get(), certificate_.get(), NID_subject_alt_name, "DNS:" + host) &&
                    X509_sign(leaf.get(), key_.get(), EVP_sha256()) > 0 &&
                    SSL_CTX_use_certificate(context.get(), leaf.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(context.get(), leaf_key_.get()) == 1;
  return done ? std::move(context) : nullptr;
}

bool Authority::certifies(const std::string& host) const {
  if (host.contains('*')) return false;  // no host, and a certificate for it would be one for many
  if (named_.contains(host)) return true;
  for (std::size_t dot = host.find('.'); dot != std::string::npos; dot = host.find('.', dot + 1))
    if (named_.contains("*" + host.substr(dot))) return true;
  return false;
}

SSL_CTX* Authority::context_for(const std::string& host, std::int64_t now_us) {
  if (!certifies(host)) return nullptr;
  if (leaves_.size() >= kMostLeaves && !leaves_.contains(host))
    leaves_.erase(std::ranges::min_element(leaves_, {}, [](const auto& leaf) { return leaf.second.used_us; }));
  Leaf& leaf = leaves_[host];
  leaf.used_us = now_us;
  if (leaf.context && now_us - leaf.made_us < kDayUs) return leaf.context.get();
  leaf.context = make_leaf(host), leaf.made_us = now_us;
  return leaf.context.get();
}

}  // namespace caisson::egress
