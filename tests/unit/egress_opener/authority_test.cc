// The hosts that the authority certifies, and those that its own certificate permits.
#include "launcher/egress/opener/authority.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "launcher/egress/list/list.h"

namespace caisson::egress {
namespace {

using Certificate = OpensslPtr<X509, X509_free>;

Authority authority(std::set<std::string> hosts) {
  auto made = Authority::create("");
  EXPECT_TRUE(made && made->certify(std::move(hosts)));
  return std::move(*made);
}

Certificate certificate_of(const Authority& of) {
  const std::string pem = of.pem();
  const OpensslPtr<BIO, BIO_free> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

// What a client that believes `by` says of the leaf.
int verified(const Authority& by, SSL_CTX* leaf) {
  const OpensslPtr<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  const OpensslPtr<X509_STORE_CTX, X509_STORE_CTX_free> check(X509_STORE_CTX_new());
  const Certificate root = certificate_of(by);
  X509_STORE_add_cert(store.get(), root.get());
  X509_STORE_CTX_init(check.get(), store.get(), SSL_CTX_get0_certificate(leaf), nullptr);
  X509_verify_cert(check.get());
  return X509_STORE_CTX_get_error(check.get());
}

TEST(Authority, CertifiesNamesAndWhatIsBelowASuffix) {
  Authority made = authority({"api.test", "*.example.org"});
  for (const char* host : {"api.test", "a.example.org", "a.b.example.org"}) {
    SSL_CTX* const leaf = made.context_for(host, 1);
    ASSERT_NE(leaf, nullptr) << host;
    EXPECT_EQ(verified(made, leaf), X509_V_OK) << host;
    EXPECT_EQ(X509_check_host(SSL_CTX_get0_certificate(leaf), host, 0, 0, nullptr), 1) << host;
  }
  for (const char* host : {"example.org", "xexample.org", "a.api.test", "test", "*.example.org", ""})
    EXPECT_EQ(made.context_for(host, 1), nullptr) << host;
}

// The key of the same seed: one that was taken over certifies whatever it likes, and who believes the other one's certificate
// believes that only of its names.
TEST(Authority, ItsCertificateIsForNothingElse) {
  const std::string seed(64, 's');
  auto narrow = Authority::create(seed), wide = Authority::create(seed);
  ASSERT_TRUE(narrow && wide && narrow->certify({"api.test", "*.example.org"}));
  ASSERT_TRUE(wide->certify({"api.test", "other.test", "*.org"}));
  EXPECT_EQ(verified(*narrow, wide->context_for("a.example.org", 1)), X509_V_OK);
  for (const char* host : {"other.test", "xexample.org", "example.com.org"})
    EXPECT_EQ(verified(*narrow, wide->context_for(host, 1)), X509_V_ERR_PERMITTED_VIOLATION) << host;
}

TEST(Authority, HasALeafForADayAndNotOneForEachNameThatIsAskedFor) {
  Authority made = authority({"*.example.org"});
  SSL_CTX* const first = made.context_for("a.example.org", 1);
  const Certificate kept(X509_dup(SSL_CTX_get0_certificate(first)));
  EXPECT_EQ(made.context_for("a.example.org", 2), first);
  for (int i = 0; i < 1000; ++i) ASSERT_NE(made.context_for("n" + std::to_string(i) + ".example.org", 3 + i), nullptr);
  EXPECT_EQ(made.leaves(), 256U);
  SSL_CTX* const again = made.context_for("a.example.org", 2000);
  EXPECT_NE(X509_cmp(SSL_CTX_get0_certificate(again), kept.get()), 0) << "it was the one that was used least lately";
  SSL_CTX* const recent = made.context_for("n999.example.org", 2001);
  EXPECT_EQ(made.context_for("n999.example.org", 2002), recent);
}

TEST(Authority, NamesAsManyAsFit) {
  std::set<std::string> hosts;
  for (int i = 1000; i < 1400; ++i) hosts.insert("h" + std::to_string(i) + ".some-name-of-a-host.example.org");
  Authority made = authority(hosts);
  EXPECT_EQ(made.hosts(), hosts);
  EXPECT_LT(made.pem().size(), 14U * 1024);
  SSL_CTX* const first = made.context_for("h1000.some-name-of-a-host.example.org", 1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(verified(made, first), X509_V_OK);
  EXPECT_EQ(made.context_for("h1399.some-name-of-a-host.example.org", 1), nullptr);
  // The longest that a policy may have: one certificate takes it.
  hosts.clear();
  for (int i = 10; i < 40; ++i)
    hosts.insert(std::string(63, 'a') + "." + std::string(63, 'b') + "." + std::string(63, 'c') + ".h" + std::to_string(i));
  EXPECT_LT(authority(hosts).pem().size(), 14U * 1024);
}

}  // namespace
}  // namespace caisson::egress
