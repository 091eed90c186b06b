// The one answer to what must not happen: HTTP 500 with an id that is also in the log. The client learns nothing else.
#pragma once

#include <exception>
#include <string_view>

#include "agent/http/response.h"

namespace caisson::http {

[[nodiscard]] Response internal_failure(std::string_view what);
[[nodiscard]] Response internal_failure(const std::exception_ptr& thrown);

}  // namespace caisson::http
