#include "launcher/base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

namespace caisson {

std::string sha256_hex(std::string_view data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  // Without a hash there is no audit chain and no policy digest: nothing sensible is left to do.
  if (EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1 || size != digest.size()) std::abort();
  std::string out;
  for (const unsigned char b : digest) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

}  // namespace caisson
