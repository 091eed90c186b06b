// Failures of file operations as clients expect them: HTTP 200, success false, and a FileOperationError as `data`. Nothing of the
// operation's result stands beside it: clients that never read `success` take whatever parses as a result for success, and those
// of an older SDK raise instead. The words are Python's, because clients look for them.
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

// path: what the client gave, where the worker names none.
[[nodiscard]] FileOperationError file_error(const services::FileFailure& why, const FileOperation& operation,
                                            const std::string& path);
[[nodiscard]] http::Response file_failure(const FileOperationError& error);
// The HTTP status of a download that fails.
[[nodiscard]] int file_status(const FileOperationError& error);

// There is no root in a session, and what its user may not do nobody does for it.
[[nodiscard]] services::FileFailure sudo_refused(const std::string& path);
// `bytes` are `broken` as it says.
[[nodiscard]] services::FileFailure decode_failure(const services::BrokenText& broken, std::string_view bytes,
                                                   const std::string& path);

}  // namespace caisson::routes
