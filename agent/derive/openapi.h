// The OpenAPI 3.1 document, derived from the route table and the Schemas. Nothing in it is written by hand.
#pragma once

#include <vector>

#include "agent/routes/route.h"

namespace caisson::derive {

[[nodiscard]] json::Value openapi(const std::vector<const routes::Route*>& table);

}  // namespace caisson::derive
