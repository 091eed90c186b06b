// The answer to a request without a key that is right (RFC 9110, 15.5.2 and 11.6.1).
#pragma once

#include "agent/http/response.h"

namespace caisson::auth {

// given: the request had a key, which is wrong.
[[nodiscard]] http::Response unauthorized(bool given);

}  // namespace caisson::auth
