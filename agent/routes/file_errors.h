// Failures of file operations as clients expect them: HTTP 200, success false, and a FileOperationError as `data`. No member of
// the operation's result is beside it: clients that never read `success` take anything that parses as a result for success, and
// an older SDK then raises instead. The words are Python's, because clients look for them.
#pragma once

#include "agent/http/response.h"
#include "agent/routes/file_types.h"
#include "agent/services/common/text.h"
#include "agent/services/files/file_service.h"

namespace caisson::routes {

// operation: "read"; failed: "Failed to read file".
struct FileOperation {
  std::string_view name, failed;
};

// path: the client's, used if the worker names none.
[[nodiscard]] FileOperationError file_error(const services::FileFailure& why, const FileOperation& operation,
                                            const std::string& path);
[[nodiscard]] http::Response file_failure(const FileOperationError& error);
// The HTTP status of a download that fails.
[[nodiscard]] int file_status(const FileOperationError& error);

// A session has no root, and nothing acts for its user beyond its rights.
[[nodiscard]] services::FileFailure sudo_refused(const std::string& path);
// The failure for `bytes` that are `broken` in this way.
[[nodiscard]] services::FileFailure decode_failure(const services::BrokenText& broken, std::string_view bytes,
                                                   const std::string& path);

}  // namespace caisson::routes
