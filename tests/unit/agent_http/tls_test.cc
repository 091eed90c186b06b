// What the server takes as a certificate with its key, and what it takes as the beginning of a handshake.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <gtest/gtest.h>

#include "agent/http/tls_stream.h"

namespace caisson::http {
namespace {

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

struct PemPair {
  std::string certificate, key, locked_key;
};

// A certificate that signs itself.
PemPair make_pair(const char* curve = "P-256") {
  EVP_PKEY* key = EVP_EC_gen(curve);
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  BIO *public_text = BIO_new(BIO_s_mem()), *private_text = BIO_new(BIO_s_mem()), *locked_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(public_text, certificate);
  PEM_write_bio_PrivateKey(private_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  unsigned char passphrase[] = "secret";
  PEM_write_bio_PrivateKey(locked_text, key, EVP_aes_128_cbc(), passphrase, sizeof passphrase - 1, nullptr, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {text_of(public_text), text_of(private_text), text_of(locked_text)};
}

std::string refusal(std::string_view certificates, std::string_view key) {
  const auto context = tls_context(certificates, key);
  return context ? "" : context.error().what;
}

TEST(TlsContext, APairIsTaken) {
  const PemPair pair = make_pair();
  EXPECT_EQ(refusal(pair.certificate, pair.key), "");
}

TEST(TlsContext, TextAroundTheCertificatesIsIgnored) {
  const PemPair pair = make_pair();
  EXPECT_EQ(refusal("subject=x\n" + pair.certificate + "\nissuer:\n" + make_pair().certificate + "end\n", pair.key), "");
}

TEST(TlsContext, TheKeyOfAnotherCertificateIsRefused) {
  EXPECT_TRUE(refusal(make_pair().certificate, make_pair().key).starts_with("the key is not that of the certificate"));
}

TEST(TlsContext, AKeyWithAPassphraseIsRefusedWithoutAskingForIt) {
  const PemPair pair = make_pair();
  EXPECT_TRUE(refusal(pair.certificate, pair.locked_key).starts_with("there is no private key in PEM without a passphrase"));
}

TEST(TlsContext, AWeakKeyIsRefused) {
  const PemPair pair = make_pair("secp160r1");
  EXPECT_TRUE(refusal(pair.certificate, pair.key).starts_with("the certificate cannot be used"));
}

TEST(TlsContext, ALongChainIsRefused) {
  const PemPair pair = make_pair();
  std::string chain = pair.certificate;
  for (int i = 0; i < 17; ++i) chain += pair.certificate;
  EXPECT_TRUE(refusal(chain, pair.key).starts_with("the chain has more than 16 certificates"));
}

TEST(TlsContext, RefusalsContainNothingOfTheKey) {
  const PemPair pair = make_pair();
  const std::string said = refusal(make_pair().certificate, pair.key);
  EXPECT_EQ(said.find(pair.key.substr(30, 16)), std::string::npos);
}

class TlsBeginning : public testing::Test {
 protected:
  TlsBeginning() {
    const PemPair pair = make_pair();
    wire_ = std::make_shared<TlsWire>(asio::ip::tcp::socket(io_), *tls_context(pair.certificate, pair.key));
  }
  // Byte by byte, as a slow client sends.
  bool takes(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (!wire_->acceptable(bytes.substr(i, 1))) return false;
    return true;
  }
  asio::io_context io_;
  std::shared_ptr<TlsWire> wire_;
};

using namespace std::string_view_literals;

TEST_F(TlsBeginning, AClientHelloIsTaken) { EXPECT_TRUE(takes("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv)); }

TEST_F(TlsBeginning, ARequestIsPlain) {
  EXPECT_FALSE(takes("GET / HTTP/1.1\r\n"));
  EXPECT_TRUE(wire_->plain);
}

TEST_F(TlsBeginning, OtherBytesAreNotAnsweredAsHttp) {
  EXPECT_FALSE(takes("\x80\x2e\x01"sv));
  EXPECT_FALSE(wire_->plain);
}

TEST_F(TlsBeginning, AnotherFirstMessageIsRefused) { EXPECT_FALSE(takes("\x16\x03\x01\x02\x00\x02"sv)); }

TEST_F(TlsBeginning, AHelloOf16KiBIsRefusedBeforeItCame) { EXPECT_FALSE(takes("\x16\x03\x01\x40\x00\x01\x00\x40"sv)); }

TEST_F(TlsBeginning, AHelloJustBelow16KiBIsTaken) { EXPECT_TRUE(takes("\x16\x03\x01\x40\x00\x01\x00\x3f\xff"sv)); }

TEST_F(TlsBeginning, AHandshakeOfTooManyBytesIsRefused) {
  EXPECT_TRUE(takes("\x16\x03\x01\x02\x00\x01\x00\x01\xfc"sv));
  EXPECT_TRUE(wire_->acceptable(std::string(60 * 1024, 'x')));
  EXPECT_FALSE(wire_->acceptable(std::string(5 * 1024, 'x')));
}

TEST_F(TlsBeginning, AfterTheHandshakeBytesAreNotCounted) {
  EXPECT_TRUE(takes("\x16\x03\x01\x02\x00\x01\x00\x01\xfc"sv));
  wire_->established = true;
  EXPECT_TRUE(wire_->acceptable(std::string(100 * 1024, 'x')));
}

}  // namespace
}  // namespace caisson::http
