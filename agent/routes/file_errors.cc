#include "agent/routes/file_errors.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace caisson::routes {
namespace {

struct Row {
  int number;
  std::string_view kind, exception;
  bool retryable = false;
};
constexpr Row kRows[] = {
    {ENOENT, "not_found", "FileNotFoundError"},
    {EACCES, "permission_denied", "PermissionError"},
    {EPERM, "permission_denied", "PermissionError"},
    {EISDIR, "invalid_target", "IsADirectoryError"},
    {ENOTDIR, "invalid_target", "NotADirectoryError"},
    {ENXIO, "invalid_target", "OSError"},
    {EEXIST, "already_exists", "FileExistsError"},
    {ENAMETOOLONG, "invalid_path", "OSError"},
    {ELOOP, "invalid_path", "OSError"},
    {EINVAL, "invalid_path", "OSError"},
    {EROFS, "read_only_filesystem", "OSError"},
    {ENOSPC, "no_space_left", "OSError"},
    {EDQUOT, "no_space_left", "OSError"},
    {EAGAIN, "io_error", "BlockingIOError", true},
    {EINTR, "io_error", "InterruptedError", true},
    {EBUSY, "io_error", "OSError", true},
    {EMFILE, "io_error", "OSError", true},
    {ENFILE, "io_error", "OSError", true},
    {ENOMEM, "io_error", "OSError", true},
    {ETXTBSY, "io_error", "OSError", true},
};
constexpr Row kAnother{0, "io_error", "OSError"};

const Row& row_of(int number) {
  for (const Row& row : kRows)
    if (row.number == number) return row;
  return kAnother;
}

// A string in Python's notation.
std::string python_quoted(const std::string& text) {
  const char quote = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    char escape[8] = "";
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (c == '\\' || c == quote) out.append(1, '\\').append(1, c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else out += c;
    out += escape;
  }
  return out + quote;
}

// The worker is untrusted: only kinds that clients know pass.
std::string known_kind(const std::string& kind, int number) {
  for (const std::string_view known : {"not_found", "permission_denied", "invalid_target", "already_exists", "invalid_path",
                                       "read_only_filesystem", "no_space_left", "decode_error", "io_error"})
    if (kind == known) return kind;
  return std::string(row_of(number).kind);
}

}  // namespace

FileOperationError file_error(const services::FileFailure& why, const FileOperation& operation, const std::string& path) {
  const Row& row = row_of(why.number);
  FileOperationError out;
  out.path = services::to_utf8(why.path.empty() ? path : why.path);
  out.operation = operation.name;
  out.error_type = known_kind(why.kind, why.number);
  out.retryable = row.retryable;
  out.end = why.end;
  if (why.number != 0) {
    out.errno_ = why.number;
    out.errno_name = errno_name(why.number);
    out.exception_type = std::string(row.exception);
  } else if (out.error_type == "decode_error") {
    out.exception_type = "UnicodeDecodeError";
  }
  std::string what = services::to_utf8(why.text);
  const bool by_errno = what.empty();
  if (by_errno && why.number == EFBIG)
    what = "[Errno 27] File too large for one answer: read it by lines (start_line, end_line) or with /v1/file/download";
  else if (by_errno) what = "[Errno " + std::to_string(why.number) + "] " + ::strerrordesc_np(why.number);
  out.message = std::string(operation.failed) + ": " + what;
  if (by_errno || (why.number != 0 && !out.path.empty())) out.message += ": " + python_quoted(out.path);
  return out;
}

http::Response file_failure(const FileOperationError& error) {
  json::Value data = encode(error);
  if (!error.end) data.erase("end");  // validators print both ends of a refused value, so errno and its name come first
  return http::fail(error.message, std::move(data));
}

int file_status(const FileOperationError& error) {
  if (error.error_type == "not_found") return 404;
  if (error.error_type == "permission_denied") return 403;
  return error.error_type == "io_error" ? 500 : 400;
}

services::FileFailure sudo_refused(const std::string& path) {
  return {EPERM, path, "permission_denied",
          "sudo is not permitted: sessions of the domain 'file' have no root, and their policy grants none. Repeat without sudo"};
}

services::FileFailure decode_failure(const services::BrokenText& broken, std::string_view bytes, const std::string& path) {
  char byte[8] = "";
  std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(bytes[broken.at])));
  const std::string at = std::to_string(broken.at);
  const std::string where = broken.size == 1 ? "byte " + std::string(byte) + " in position " + at
                                             : "bytes in position " + at + "-" + std::to_string(broken.at + broken.size - 1);
  return {0, path, "decode_error", "'utf-8' codec can't decode " + where + ": " + std::string(broken.reason)};
}

}  // namespace caisson::routes
