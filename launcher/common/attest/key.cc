#include "launcher/common/attest/key.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launcher/common/attest/base64url.h"
#include "launcher/common/base/hash.h"
#include "launcher/common/base/sys.h"

namespace caisson::attest {
namespace {

constexpr std::size_t kPublicBytes = 32, kSignatureBytes = 64, kMaxPem = 16 * 1024;

// Without openssl.cnf: no file may change what a signature is.
void initialise() { (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

}  // namespace

void Key::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Result<Key> Key::take(evp_pkey_st* raw) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> owned(raw, EVP_PKEY_free);
  if (raw == nullptr || EVP_PKEY_get_id(raw) != EVP_PKEY_ED25519)
    return fail(Code::invalid_argument, "not an Ed25519 private key");
  unsigned char half[kPublicBytes];
  std::size_t size = sizeof half;
  if (EVP_PKEY_get_raw_public_key(raw, half, &size) != 1 || size != sizeof half)
    return fail(Code::internal, "cannot take the public key");
  Key key{Context(EVP_MD_CTX_new())};
  if (!key.ready_ || EVP_DigestSignInit(key.ready_.get(), nullptr, nullptr, nullptr, raw) != 1)
    return fail(Code::internal, "cannot sign");
  key.public_.assign(reinterpret_cast<const char*>(half), size);
  // RFC 7638: the required members alone, in this order.
  key.id_ = base64url(from_hex(sha256_hex(R"({"crv":"Ed25519","kty":"OKP","x":")" + base64url(key.public_) + "\"}")));
  return key;
}

Result<Key> Key::generate() {
  initialise();
  return take(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
}

Result<Key> Key::load(const std::string& path) {
  initialise();
  TRY_ASSIGN(const Fd fd, sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + quote(path));
  if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & 077) != 0)
    return fail(Code::permission_denied, quote(path) +
                                             " must be a regular file that belongs to the launcher's user and that nobody "
                                             "else can read (chmod 600)");
  TRY_ASSIGN(std::string pem, sys::read_fd(fd.get(), kMaxPem));
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                          BIO_free_all);
  // The password callback refuses: nobody is there to be asked.
  evp_pkey_st* key = PEM_read_bio_PrivateKey(bio.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr);
  OPENSSL_cleanse(pem.data(), pem.size());
  auto taken = take(key);
  if (!taken) return std::unexpected(std::move(taken).error().wrap(quote(path)));
  return taken;
}

nlohmann::json Key::jwk() const {
  return {{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", base64url(public_)}, {"kid", id_}, {"alg", "EdDSA"}, {"use", "sig"}};
}

Result<std::string> Key::sign(std::string_view data) const {
  const Context context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = signature.size();
  if (!context || EVP_MD_CTX_copy_ex(context.get(), ready_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes(data), data.size()) != 1 ||
      size != signature.size())
    return fail(Code::internal, "cannot sign");
  return signature;
}

}  // namespace caisson::attest
