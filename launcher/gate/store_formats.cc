#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>

#include "launcher/gate/store.h"

namespace caisson::gate {
namespace {

template <auto Free>
struct Freed {
  void operator()(auto* pointer) const { Free(pointer); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

// Without openssl.cnf: no file may change what a hash is.
Bio reader(std::string_view text) {
  (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ERR_clear_error();
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

bool at_end() { return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; }

std::string hash_of(const X509* certificate) {
  char out[9];
  const auto hash = static_cast<unsigned long>(X509_NAME_hash_ex(X509_get_subject_name(certificate), nullptr, nullptr, nullptr));
  (void)std::snprintf(out, sizeof out, "%08lx", hash & 0xffffffffUL);
  return out;
}

// DER (X.690), as far as a store needs it.
enum Tag : unsigned char { kOctets = 0x04, kSequence = 0x30, kSet = 0x31, kExplicit0 = 0xa0 };

std::string der(Tag tag, std::string_view content) {
  std::string out(1, static_cast<char>(tag)), length;
  for (std::size_t rest = content.size(); rest != 0; rest >>= 8) length.insert(length.begin(), static_cast<char>(rest & 0xff));
  if (content.size() < 0x80) out += static_cast<char>(content.size());
  else (out += static_cast<char>(0x80 | length.size())) += length;
  return out.append(content);
}

using namespace std::string_view_literals;
// Object identifiers, whole: 1.2.840.113549.1.7.1, .12.10.1.3 and .9.22.1 (RFC 7292); Oracle's "this is trusted",
// 2.16.840.1.113894.746875.1.1, without which a JVM takes a certificate for part of a chain, and for every purpose, 2.5.29.37.0.
constexpr auto kData = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"sv;
constexpr auto kCertBag = "\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03"sv;
constexpr auto kX509 = "\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01"sv;
constexpr auto kTrusted = "\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01"sv;
constexpr auto kAnyPurpose = "\x06\x04\x55\x1d\x25\x00"sv;
constexpr auto kVersion3 = "\x02\x01\x03"sv;

std::string joined(std::string_view a, std::string_view b) { return std::string(a).append(b); }

std::string content_info(std::string_view content) {
  return der(kSequence, joined(kData, der(kExplicit0, der(kOctets, content))));
}

std::string base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace

std::vector<std::string> certificates_of(std::string_view pem) {
  std::vector<std::string> out;
  const Bio from = reader(pem);
  while (from && BIO_pending(from.get()) != 0) {
    char *name = nullptr, *header = nullptr;
    unsigned char* bytes = nullptr;
    long size = 0;
    if (PEM_read_bio(from.get(), &name, &header, &bytes, &size) != 1) {
      if (at_end()) break;
      continue;  // it has read past what is malformed
    }
    if (std::string_view(name) == PEM_STRING_X509)
      out.emplace_back(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
    for (void* one : {static_cast<void*>(name), static_cast<void*>(header), static_cast<void*>(bytes)}) OPENSSL_free(one);
  }
  ERR_clear_error();
  return out;
}

Result<std::vector<Named>> named_certificates(std::string_view pem) {
  std::vector<Named> out;
  const Bio from = reader(pem);
  while (from) {
    const Certificate one(PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr));
    if (!one && at_end()) break;
    const Bio to(BIO_new(BIO_s_mem()));
    char* text = nullptr;
    if (!one || !to || PEM_write_bio_X509(to.get(), one.get()) != 1) {
      out.clear();
      break;
    }
    const long size = BIO_get_mem_data(to.get(), &text);
    out.push_back({hash_of(one.get()), std::string(text, static_cast<std::size_t>(size))});
  }
  ERR_clear_error();
  if (out.empty()) return fail(Code::invalid_argument, "has no certificates in PEM, or one that is malformed");
  return out;
}

std::string java_store(std::span<const std::string> certificates) {
  const std::string trusted = der(kSet, der(kSequence, joined(kTrusted, der(kSet, kAnyPurpose))));
  std::string bags;
  for (const std::string& one : certificates) {
    const std::string certificate = der(kSequence, joined(kX509, der(kExplicit0, der(kOctets, one))));
    bags += der(kSequence, joined(kCertBag, der(kExplicit0, certificate) + trusted));
  }
  return der(kSequence, joined(kVersion3, content_info(der(kSequence, content_info(der(kSequence, bags))))));
}

std::string chromium_policy(std::span<const std::string> certificates) {
  std::string out = "{\"CACertificates\": [";
  for (const std::string& one : certificates) (out += &one == certificates.data() ? "\"" : "\", \"") += base64(one);
  return out + (certificates.empty() ? "]}\n" : "\"]}\n");
}

}  // namespace caisson::gate
