// A manual of the API for language models, derived from the route table and the Schemas. Nothing in it is written by hand but the
// words of its beginning.
#pragma once

#include <string>
#include <vector>

#include "agent/routes/route.h"

namespace caisson::derive {

[[nodiscard]] std::string llms_text(const std::vector<const routes::Route*>& table);

}  // namespace caisson::derive
