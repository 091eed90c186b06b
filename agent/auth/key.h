// The API key of a request and its comparison. A key is looked for in X-AIO-API-Key, Authorization: Bearer and
// ?api_key=, in this order; the first one present decides, so that a wrong header is not saved by a right query.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/http/request.h"

namespace caisson::auth {

[[nodiscard]] std::optional<std::string_view> key_of(const http::Request& request);

// Compares SHA-256 digests in constant time: neither the content nor the length of the key shows in the time.
class Key {
 public:
  explicit Key(std::string_view secret);
  [[nodiscard]] bool matches(std::string_view given) const;

 private:
  std::string digest_;
};

}  // namespace caisson::auth
