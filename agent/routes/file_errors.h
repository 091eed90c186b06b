// Failures of file operations as clients expect them: HTTP 200, success false, and in `data` the fields of FileOperationError
// together with those of the operation's result, empty: older SDKs parse the one, newer ones the other. The words are Python's,
// because clients look for them.
#pragma once

#include "agent/http/response.h"
#include "agent/routes/file_types.h"
#include "agent/session/file_service.h"

namespace caisson::routes {

// operation: "read"; failed: "Failed to read file".
struct FileOperation {
  std::string_view name, failed;
};

// path: what the client gave, where the worker names none.
[[nodiscard]] FileOperationError file_error(const session::FileFailure& why, const FileOperation& operation,
                                            const std::string& path);
// empty: the required fields of the operation's result.
[[nodiscard]] http::Response file_failure(const FileOperationError& error, json::Value empty);
// The HTTP status of a download that fails.
[[nodiscard]] int file_status(const FileOperationError& error);

// There is no root in a session, and what its user may not do nobody does for it.
[[nodiscard]] session::FileFailure sudo_refused(const std::string& path);
[[nodiscard]] session::FileFailure decode_failure(std::string_view bytes, const std::string& path);
// The first byte that is no UTF-8; nullopt: all of it is.
[[nodiscard]] std::optional<std::size_t> first_invalid(std::string_view bytes);

}  // namespace caisson::routes
