// The secret of a request: an API key or a token. It is looked for in X-AIO-API-Key, Authorization: Bearer and
// ?api_key=, in this order; the first one present decides, so that a wrong header is not saved by a right query.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/http/request.h"

namespace caisson::auth {

[[nodiscard]] std::optional<std::string_view> key_of(const http::Request& request);

}  // namespace caisson::auth
