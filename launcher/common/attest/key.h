// The key that signs statements: Ed25519 (RFC 8032), made at each start and never written anywhere, or mounted by the operator
// so that a verifier can know it beforehand. The only user of libcrypto in the launcher.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "launcher/common/base/result.h"

struct evp_md_ctx_st;
struct evp_pkey_st;

namespace caisson::attest {

class Key {
 public:
  [[nodiscard]] static Result<Key> generate();
  // A PEM private key (PKCS #8, as `openssl genpkey -algorithm ed25519` writes it). Errors: permission_denied when somebody
  // else than its owner, which must be us, may read it; invalid_argument when it is no Ed25519 key.
  [[nodiscard]] static Result<Key> load(const std::string& path);

  [[nodiscard]] nlohmann::json jwk() const;                    // the public half (RFC 8037), with "kid"
  [[nodiscard]] const std::string& id() const { return id_; }  // its thumbprint (RFC 7638)
  // 64 bytes.
  [[nodiscard]] Result<std::string> sign(std::string_view data) const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_md_ctx_st, Free>;
  [[nodiscard]] static Result<Key> take(evp_pkey_st* key);
  explicit Key(Context ready) : ready_(std::move(ready)) {}
  Context ready_;  // to be copied for each signature: looking the algorithm up takes as long as signing
  std::string public_, id_;
};

// `public_key`: 32 bytes. Errors: permission_denied when the signature is not of this data by this key.
[[nodiscard]] Status verify(std::string_view public_key, std::string_view data, std::string_view signature);

}  // namespace caisson::attest
