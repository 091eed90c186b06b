// Answers to errors of the launcher and of caisson-gate that a client can correct. Unlike a failing tool, such a refusal has an
// HTTP status of its own.
#pragma once

#include "agent/routes/table.h"

namespace caisson::routes {

// The error itself where no client can correct it.
[[nodiscard]] Result<http::Response> refusal(const Error& error);

}  // namespace caisson::routes
