// Shared by the handlers of /v1/file: one call of the workspace's file worker, and its failure as an answer.
#pragma once

#include "agent/routes/file_errors.h"
#include "agent/routes/route.h"

namespace caisson::routes {

// The member of an answer of the worker; "" and 0 where it is missing or of another type.
[[nodiscard]] std::string text_in(const json::Value& head, std::string_view key);
[[nodiscard]] std::int64_t number_in(const json::Value& head, std::string_view key);
// The JSON array in an answer's bytes. Bounded; the worker is untrusted.
[[nodiscard]] Result<json::Value> list_in(const std::string& bytes);

// Nanoseconds since the epoch in ISO 8601.
[[nodiscard]] std::string iso_time(std::int64_t ns);

[[nodiscard]] http::Response answer_failure(const services::FileFailure& why, const FileOperation& operation,
                                            const std::string& path);

}  // namespace caisson::routes
