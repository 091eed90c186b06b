// A directory of certificates, as it is to be.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::gate {

struct Store {
  std::map<std::string, std::string> files, links;  // by name: bytes, targets. A name may have one folder before it

  // Under the next free name by which OpenSSL finds it. hash: of its subject, eight digits.
  void add(const std::string& hash, std::string certificate);
  // Makes the directory so, and leaves alone what is. What changes is put in place whole: sessions read meanwhile.
  [[nodiscard]] Status put(const std::string& directory) const;
};

// The certificates of a text in PEM, in DER. What is malformed in it is left out.
[[nodiscard]] std::vector<std::string> certificates_of(std::string_view pem);
// With the hash of its subject's name, for a file that we trust: it is parsed by OpenSSL.
struct Named {
  std::string hash, pem;
};
[[nodiscard]] Result<std::vector<Named>> named_certificates(std::string_view pem);

// What a JVM believes: PKCS #12 without encryption and without a MAC, as OpenJDK itself has it since 18. Every version from 8 on
// reads it, with any password and with none.
[[nodiscard]] std::string java_store(std::span<const std::string> certificates);
// What Chromium believes besides its own, as a file for its folder of policies.
[[nodiscard]] std::string chromium_policy(std::span<const std::string> certificates);

}  // namespace caisson::gate
