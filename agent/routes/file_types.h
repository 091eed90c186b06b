// Requests and responses of /v1/file about the content of a file, by the contract's names.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"
#include "agent/routes/one_of.h"

namespace caisson::routes {

struct FileOperationError {
  std::string path;
  std::string operation;
  std::string message;
  std::string error_type;
  bool retryable = false;
  std::optional<std::int64_t> errno_;
  std::optional<std::string> errno_name;
  std::optional<std::string> exception_type;
  std::optional<bridge::End> end;
};

struct FileReadRequest {
  std::string file;
  std::optional<std::int64_t> start_line;
  std::optional<std::int64_t> end_line;
  std::optional<bool> sudo = false;
};

struct FileReadResult {
  std::string content;
  std::string file;
};

struct FileWriteRequest {
  std::string file;
  std::string content;
  std::optional<std::string> encoding = "utf-8";
  std::optional<bool> append = false;
  std::optional<bool> leading_newline = false;
  std::optional<bool> trailing_newline = false;
  std::optional<bool> sudo = false;
};

struct FileWriteResult {
  std::string file;
  std::optional<std::int64_t> bytes_written;
};

struct FileReplaceRequest {
  std::string file;
  std::string old_str;
  std::string new_str;
  std::optional<bool> sudo = false;
};

struct FileReplaceResult {
  std::string file;
  std::int64_t replaced_count = 0;
};

struct FileUploadResult {
  std::string file_path;
  std::int64_t file_size = 0;
  bool success = false;
};

struct StrReplaceEditorRequest {
  std::string command;
  std::string path;
  std::optional<std::string> file_text;
  std::optional<std::string> old_str;
  std::optional<std::string> new_str;
  std::optional<std::int64_t> insert_line;
  std::optional<std::vector<std::int64_t>> view_range = std::vector<std::int64_t>();
  std::optional<std::string> replace_mode;
  std::optional<std::vector<std::int64_t>> page_range;
  std::optional<std::string> sheet_name;
  std::optional<std::vector<std::int64_t>> row_range;
  std::optional<std::vector<std::int64_t>> slide_range;
  std::optional<bool> enable_metadata = false;
};

struct StrReplaceEditorResult {
  std::string output;
  std::optional<std::string> error;
  std::string path;
  bool prev_exist = false;
  std::optional<std::string> old_content;
  std::optional<std::string> new_content;
  std::optional<std::map<std::string, json::Value>> metadata;
};

inline constexpr std::array<std::string_view, 3> kEncodings = {"utf-8", "base64", "raw"};
inline constexpr std::array<std::string_view, 5> kEditorCommands = {"view", "create", "str_replace", "insert", "undo_edit"};
inline constexpr std::array<std::string_view, 3> kReplaceModes = {"ALL", "FIRST", "LAST"};

template <>
struct Schema<FileOperationError> {
  static constexpr std::string_view name = "FileOperationError";
  static constexpr auto fields =
      std::tuple{field("path", &FileOperationError::path, "The path"),
                 field("operation", &FileOperationError::operation, "The operation"),
                 field("message", &FileOperationError::message, "The error"),
                 field("error_type", &FileOperationError::error_type, "Its category"),
                 field("retryable", &FileOperationError::retryable, "Whether repeating may succeed").defaulted(),
                 field("errno", &FileOperationError::errno_, "errno, where the kernel refused"),
                 field("errno_name", &FileOperationError::errno_name, "Its name, such as ENOENT"),
                 field("exception_type", &FileOperationError::exception_type, "What Python calls it"),
                 field("end", &FileOperationError::end, "Why the file worker ended, if it did")};
};

template <>
struct Schema<FileReadRequest> {
  static constexpr std::string_view name = "FileReadRequest";
  static constexpr auto fields =
      std::tuple{field("file", &FileReadRequest::file, "Path; a relative one starts at the home"),
                 field("start_line", &FileReadRequest::start_line, "First line, from 0; negative: from the end"),
                 field("end_line", &FileReadRequest::end_line, "Line after the last one"),
                 field("sudo", &FileReadRequest::sudo, "Refused when true: a session has no root").defaulted()};
};

template <>
struct Schema<FileReadResult> {
  static constexpr std::string_view name = "FileReadResult";
  static constexpr auto fields = std::tuple{field("content", &FileReadResult::content, "Content, UTF-8"),
                                            field("file", &FileReadResult::file, "The absolute path")};
};

template <>
struct Schema<FileWriteRequest> {
  static constexpr std::string_view name = "FileWriteRequest";
  static constexpr auto fields =
      std::tuple{field("file", &FileWriteRequest::file, "Path; a relative one starts at the home. Missing directories are made"),
                 field("content", &FileWriteRequest::content, "Text, or base64 of bytes"),
                 field("encoding", &FileWriteRequest::encoding, "utf-8; base64; raw: one byte for each character up to U+00FF")
                     .one_of(kEncodings)
                     .defaulted(),
                 field("append", &FileWriteRequest::append, "Append to the present content").defaulted(),
                 field("leading_newline", &FileWriteRequest::leading_newline, "Line break in front (utf-8 only)").defaulted(),
                 field("trailing_newline", &FileWriteRequest::trailing_newline, "Line break at the end (utf-8 only)").defaulted(),
                 field("sudo", &FileWriteRequest::sudo, "Refused when true: a session has no root").defaulted()};
};

template <>
struct Schema<FileWriteResult> {
  static constexpr std::string_view name = "FileWriteResult";
  static constexpr auto fields = std::tuple{field("file", &FileWriteResult::file, "The absolute path"),
                                            field("bytes_written", &FileWriteResult::bytes_written, "Bytes written")};
};

template <>
struct Schema<FileReplaceRequest> {
  static constexpr std::string_view name = "FileReplaceRequest";
  static constexpr auto fields =
      std::tuple{field("file", &FileReplaceRequest::file, "Path; a relative one starts at the home"),
                 field("old_str", &FileReplaceRequest::old_str, "Text to replace, at every occurrence"),
                 field("new_str", &FileReplaceRequest::new_str, "The replacement"),
                 field("sudo", &FileReplaceRequest::sudo, "Refused when true: a session has no root").defaulted()};
};

template <>
struct Schema<FileReplaceResult> {
  static constexpr std::string_view name = "FileReplaceResult";
  static constexpr auto fields =
      std::tuple{field("file", &FileReplaceResult::file, "The absolute path"),
                 field("replaced_count", &FileReplaceResult::replaced_count, "Replacements made").defaulted()};
};

template <>
struct Schema<FileUploadResult> {
  static constexpr std::string_view name = "FileUploadResult";
  static constexpr auto fields = std::tuple{field("file_path", &FileUploadResult::file_path, "Where it is now"),
                                            field("file_size", &FileUploadResult::file_size, "Bytes"),
                                            field("success", &FileUploadResult::success, "Whether it is complete")};
};

template <>
struct Schema<StrReplaceEditorRequest> {
  static constexpr std::string_view name = "StrReplaceEditorRequest";
  static constexpr auto fields = std::tuple{
      field("command", &StrReplaceEditorRequest::command, "What to do").one_of(kEditorCommands),
      field("path", &StrReplaceEditorRequest::path, "Path; a relative one starts at the home"),
      field("file_text", &StrReplaceEditorRequest::file_text, "create: the text"),
      field("old_str", &StrReplaceEditorRequest::old_str, "str_replace: what to replace"),
      field("new_str", &StrReplaceEditorRequest::new_str, "str_replace, insert: the new text"),
      field("insert_line", &StrReplaceEditorRequest::insert_line,
            "insert: the line after which it goes; 0: before the first line"),
      field("view_range", &StrReplaceEditorRequest::view_range, "view: [first, last], from 1; -1: to the end").defaulted(),
      field("replace_mode", &StrReplaceEditorRequest::replace_mode, "str_replace: which of several places").one_of(kReplaceModes),
      field("page_range", &StrReplaceEditorRequest::page_range, "view of a PDF: [first, last], from 1"),
      field("sheet_name", &StrReplaceEditorRequest::sheet_name, "view of an XLSX: one sheet"),
      field("row_range", &StrReplaceEditorRequest::row_range, "view of an XLSX: [first, last], from 1"),
      field("slide_range", &StrReplaceEditorRequest::slide_range, "view of a PPTX: [first, last], from 1"),
      field("enable_metadata", &StrReplaceEditorRequest::enable_metadata,
            "view of a document: numbers of pages, sheets or slides")
          .defaulted()};
};

template <>
struct Schema<StrReplaceEditorResult> {
  static constexpr std::string_view name = "StrReplaceEditorResult";
  static constexpr auto fields =
      std::tuple{field("output", &StrReplaceEditorResult::output, "The result, in the words that clients of this tool expect"),
                 field("error", &StrReplaceEditorResult::error, "The error"),
                 field("path", &StrReplaceEditorResult::path, "The absolute path"),
                 field("prev_exist", &StrReplaceEditorResult::prev_exist, "Whether it existed before"),
                 field("old_content", &StrReplaceEditorResult::old_content, "The text before"),
                 field("new_content", &StrReplaceEditorResult::new_content, "The text now"),
                 field("metadata", &StrReplaceEditorResult::metadata, "Of documents")};
};

template <class T>
using OrFailure = OneOf<T, FileOperationError>;

}  // namespace caisson::routes
