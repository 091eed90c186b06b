// API keys: the operator's own (SANDBOX_API_KEY) and those of CAISSON_API_KEYS_FILE, each with a name and bounds. Only digests
// are kept. A file looks like this; a key that is not in it any more is refused from then on:
//   [{"name": "ci", "sha256": "<printf %s KEY | sha256sum>", "scopes": ["bash", "file:read"], "workspace": "w1", "not_after":
//   1798761600}]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/auth/principal.h"
#include "launcher/common/base/json.h"

namespace caisson::auth {

struct ApiKey {
  std::string name;
  std::string digest;  // 32 bytes
  Bounds bounds = {};
  std::int64_t not_after = 0;  // seconds since 1970; 0: no end
};

class ApiKeys {
 public:
  static constexpr std::size_t kMaxKeys = 1000, kMaxFileBytes = 1 << 20;

  // secret: SANDBOX_API_KEY; "" matches nothing.
  ApiKeys(std::string_view secret, std::vector<std::string_view> areas);
  // Replaces the keys of the file. On an error the old ones stay.
  [[nodiscard]] Status load(std::string_view text);
  // The key with this SHA-256, unless it has ended. Compares with every key, in constant time: neither content, length nor place
  // of a key shows in the time.
  [[nodiscard]] const ApiKey* by_digest(std::string_view digest, std::int64_t now) const;

 private:
  [[nodiscard]] Result<ApiKey> entry(const json::Value& value) const;
  std::vector<std::string_view> areas_;
  std::vector<ApiKey> keys_;  // the operator's own first, if there is one
  std::size_t fixed_ = 0;
};

}  // namespace caisson::auth
