#include "agent/auth/secret.h"

#include <array>
#include <stdexcept>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

namespace caisson::auth {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kIdBytes = 16, kIdLetters = 22;

constexpr std::array<signed char, 256> kValues = [] {
  std::array<signed char, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kLetters.size(); ++i) values[static_cast<unsigned char>(kLetters[i])] = static_cast<signed char>(i);
  return values;
}();

const unsigned char* octets(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

std::string random_bytes(std::size_t size) {
  std::string out(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(size)) != 1)
    throw std::runtime_error("no random bytes");  // a guessable secret would be worse than a 500
  return out;
}

// OpenSSL's one-shot functions look the algorithm up and make a context for each call, which takes longer than the digest.
std::string sha256(std::string_view text) {
  static const EVP_MD* const algorithm = ::EVP_MD_fetch(nullptr, "SHA256", nullptr);
  static EVP_MD_CTX* const context = ::EVP_MD_CTX_new();
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  const bool made = ::EVP_DigestInit_ex2(context, algorithm, nullptr) == 1 &&
                    ::EVP_DigestUpdate(context, text.data(), text.size()) == 1 &&
                    ::EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(out.data()), nullptr) == 1;
  if (!made) throw std::runtime_error("no SHA-256");  // all secrets would be the same one
  return out;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string base64url_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  unsigned held = 0, bits = 0;
  for (const char c : bytes) {
    held = (held << 8 | static_cast<unsigned char>(c)) & 0xffff;
    for (bits += 8; bits >= 6; bits -= 6) out += kLetters[(held >> (bits - 6)) & 63];
  }
  if (bits > 0) out += kLetters[(held << (6 - bits)) & 63];
  return out;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  unsigned held = 0, bits = 0;
  for (const char c : text) {
    const signed char value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    held = (held << 6 | static_cast<unsigned>(value)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(held >> bits & 0xff);
  }
  if ((held & ((1U << bits) - 1)) != 0) return std::nullopt;
  return out;
}

SecretMaker::SecretMaker(std::string purpose) : purpose_(std::move(purpose)), key_(random_bytes(32)) {}

std::string SecretMaker::new_id() { return base64url_encode(random_bytes(kIdBytes)); }

std::string SecretMaker::mac(std::string_view label, std::string_view id) const {
  const std::string text = purpose_ + '\0' + std::string(label) + '\0' + std::string(id);
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  ::HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), octets(text), text.size(),
         reinterpret_cast<unsigned char*>(out.data()), nullptr);
  return base64url_encode(out);
}

std::string SecretMaker::secret_of(std::string_view id) const { return purpose_ + std::string(id) + mac("secret", id); }
std::string SecretMaker::companion_of(std::string_view id) const { return mac("companion", id); }

std::optional<std::string> SecretMaker::id_of(std::string_view secret) const {
  if (!secret.starts_with(purpose_) || secret.size() < purpose_.size() + kIdLetters) return std::nullopt;
  const std::string_view id = secret.substr(purpose_.size(), kIdLetters);
  if (!same_secret(secret.substr(purpose_.size() + kIdLetters), mac("secret", id))) return std::nullopt;
  return std::string(id);
}

}  // namespace caisson::auth
