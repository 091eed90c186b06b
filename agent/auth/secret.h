// Secrets that the server makes, and their comparison. A secret is an id and a MAC over it under a key that this process makes at
// its start: the server can give it again without keeping it, and no memory that is read out by its tables has one. Everything
// ends with the process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::auth {

[[nodiscard]] std::string random_bytes(std::size_t size);
[[nodiscard]] std::string sha256(std::string_view text);  // 32 bytes
// Of equally long texts; the time does not tell where they differ.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

// RFC 4648, section 5, without padding. Decoding takes the one spelling of each text: no other characters, no bits that mean
// nothing.
[[nodiscard]] std::string base64url_encode(std::string_view bytes);
[[nodiscard]] std::optional<std::string> base64url_decode(std::string_view text);

class SecretMaker {
 public:
  // purpose: two makers never take each other's secrets.
  explicit SecretMaker(std::string purpose);
  [[nodiscard]] static std::string new_id();  // 128 random bits, in base64url
  [[nodiscard]] std::string secret_of(std::string_view id) const;
  // The id of a secret of this maker.
  [[nodiscard]] std::optional<std::string> id_of(std::string_view secret) const;
  // A second secret for the same id, which the first one does not tell.
  [[nodiscard]] std::string companion_of(std::string_view id) const;

 private:
  [[nodiscard]] std::string mac(std::string_view label, std::string_view id) const;
  std::string purpose_, key_;
};

}  // namespace caisson::auth
