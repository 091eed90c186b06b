// The answer to a broken invariant: HTTP 500 with the request's id, which is also in the log. The client learns nothing else.
#pragma once

#include <exception>
#include <string_view>

#include "agent/http/response.h"

namespace caisson::http {

[[nodiscard]] Response internal_failure(std::string_view what, std::string_view request_id);
[[nodiscard]] Response internal_failure(const std::exception_ptr& thrown, std::string_view request_id);

}  // namespace caisson::http
