// What caisson-gate refuses, as answers. Unlike a failing tool, such a refusal has an HTTP status of its own.
#pragma once

#include "agent/routes/table.h"

namespace caisson::routes {

[[nodiscard]] Result<http::Response> way_refusal(const Error& error);

}  // namespace caisson::routes
