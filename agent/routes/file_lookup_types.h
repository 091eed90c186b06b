// Requests and responses of /v1/file that are about many files: search, find, grep, glob, list. By the contract's names.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct FileSearchRequest {
  std::string file;
  std::string regex;
  std::optional<bool> sudo = false;
};

struct FileSearchResult {
  std::string file;
  std::vector<std::string> matches;
  std::vector<std::int64_t> line_numbers;
};

struct FileFindRequest {
  std::string path;
  std::string glob;
};

struct FileFindResult {
  std::string path;
  std::vector<std::string> files;
};

struct FileGrepRequest {
  std::string path;
  std::string pattern;
  std::optional<std::vector<std::string>> include;
  std::optional<std::vector<std::string>> exclude;
  std::optional<bool> case_insensitive = false;
  std::optional<bool> fixed_strings = false;
  std::optional<std::int64_t> context_before = 0;
  std::optional<std::int64_t> context_after = 0;
  std::optional<std::int64_t> max_results = 500;
  std::optional<std::string> max_file_size = "1M";
  std::optional<bool> multiline = false;
  std::optional<std::int64_t> offset = 0;
  std::optional<std::string> type;
  std::optional<bool> recursive = true;
};

struct GrepMatch {
  std::string file;
  std::int64_t line_number = 0;
  std::string line_content;
  std::optional<std::vector<std::string>> context_before;
  std::optional<std::vector<std::string>> context_after;
};

struct FileGrepResult {
  std::string path;
  std::string pattern;
  std::vector<GrepMatch> matches;
  std::int64_t match_count = 0;
  std::optional<std::int64_t> files_searched;
  std::optional<std::int64_t> files_matched;
  bool truncated = false;
};

struct FileGlobRequest {
  std::string path;
  std::string pattern;
  std::optional<std::vector<std::string>> exclude;
  std::optional<bool> include_hidden = false;
  std::optional<bool> files_only = true;
  std::optional<bool> include_metadata = true;
  std::optional<std::int64_t> max_results = 5000;
  std::optional<std::string> sort_by = "path";
  std::optional<bool> sort_desc = false;
};

struct GlobFileInfo {
  std::string path;
  std::string name;
  bool is_directory = false;
  std::optional<std::int64_t> size;
  std::optional<std::string> modified_time;
};

struct FileGlobResult {
  std::string path;
  std::string pattern;
  std::vector<GlobFileInfo> files;
  std::int64_t total_count = 0;
  bool truncated = false;
};

struct FileListRequest {
  std::string path;
  std::optional<bool> recursive = false;
  std::optional<bool> show_hidden = true;
  std::optional<std::vector<std::string>> file_types;
  std::optional<std::int64_t> max_depth;
  std::optional<bool> include_size = true;
  std::optional<bool> include_permissions = false;
  std::optional<std::string> sort_by = "name";
  std::optional<bool> sort_desc = false;
};

struct FileInfo {
  std::string name;
  std::string path;
  bool is_directory = false;
  std::optional<std::int64_t> size;
  std::optional<std::string> modified_time;
  std::optional<std::string> permissions;
  std::optional<std::string> extension;
};

struct FileListResult {
  std::string path;
  std::vector<FileInfo> files;
  std::int64_t total_count = 0;
  std::int64_t directory_count = 0;
  std::int64_t file_count = 0;
};

template <>
struct Schema<FileSearchRequest> {
  static constexpr std::string_view name = "FileSearchRequest";
  static constexpr auto fields =
      std::tuple{field("file", &FileSearchRequest::file, "Path; a relative one starts at the home"),
                 field("regex", &FileSearchRequest::regex, "Regular expression, as ripgrep has them"),
                 field("sudo", &FileSearchRequest::sudo, "Refused when true: a session has no root").defaulted()};
};

template <>
struct Schema<FileSearchResult> {
  static constexpr std::string_view name = "FileSearchResult";
  static constexpr auto fields =
      std::tuple{field("file", &FileSearchResult::file, "The absolute path"),
                 field("matches", &FileSearchResult::matches, "The lines that match").defaulted(),
                 field("line_numbers", &FileSearchResult::line_numbers, "Their numbers, from 1").defaulted()};
};

template <>
struct Schema<FileFindRequest> {
  static constexpr std::string_view name = "FileFindRequest";
  static constexpr auto fields = std::tuple{
      field("path", &FileFindRequest::path, "Directory"),
      field("glob", &FileFindRequest::glob, "Pattern of names at any depth; with a slash, of paths below the directory")};
};

template <>
struct Schema<FileFindResult> {
  static constexpr std::string_view name = "FileFindResult";
  static constexpr auto fields = std::tuple{field("path", &FileFindResult::path, "The absolute path"),
                                            field("files", &FileFindResult::files, "Absolute paths of files").defaulted()};
};

template <>
struct Schema<FileGrepRequest> {
  static constexpr std::string_view name = "FileGrepRequest";
  static constexpr auto fields = std::tuple{
      field("path", &FileGrepRequest::path, "File or directory"),
      field("pattern", &FileGrepRequest::pattern, "Regular expression of ripgrep, or a fixed string"),
      field("include", &FileGrepRequest::include, "Globs of files to search"),
      field("exclude", &FileGrepRequest::exclude, "Globs of files and directories to leave out"),
      field("case_insensitive", &FileGrepRequest::case_insensitive, "Ignore case").defaulted(),
      field("fixed_strings", &FileGrepRequest::fixed_strings, "The pattern is plain text, not a regular expression").defaulted(),
      field("context_before", &FileGrepRequest::context_before, "Lines before each match").min(0).max(20).defaulted(),
      field("context_after", &FileGrepRequest::context_after, "Lines after each match").min(0).max(20).defaulted(),
      field("max_results", &FileGrepRequest::max_results, "Matches in the answer").min(1).max(10000).defaulted(),
      field("max_file_size", &FileGrepRequest::max_file_size, "Larger files are left out: 500K, 1M, 2G").defaulted(),
      field("multiline", &FileGrepRequest::multiline, "A match may span lines, and . takes line breaks").defaulted(),
      field("offset", &FileGrepRequest::offset, "Matches to leave out at the start").min(0).defaulted(),
      field("type", &FileGrepRequest::type, "Type of files, as ripgrep names them: py, js, rust"),
      field("recursive", &FileGrepRequest::recursive, "Directories below as well").defaulted()};
};

template <>
struct Schema<GrepMatch> {
  static constexpr std::string_view name = "GrepMatch";
  static constexpr auto fields =
      std::tuple{field("file", &GrepMatch::file, "Absolute path"), field("line_number", &GrepMatch::line_number, "Line, from 1"),
                 field("line_content", &GrepMatch::line_content, "The line"),
                 field("context_before", &GrepMatch::context_before, "Lines before"),
                 field("context_after", &GrepMatch::context_after, "Lines after")};
};

template <>
struct Schema<FileGrepResult> {
  static constexpr std::string_view name = "FileGrepResult";
  static constexpr auto fields =
      std::tuple{field("path", &FileGrepResult::path, "The absolute path"),
                 field("pattern", &FileGrepResult::pattern, "The pattern"),
                 field("matches", &FileGrepResult::matches, "Matches, by path and line").defaulted(),
                 field("match_count", &FileGrepResult::match_count, "Number of matches, as far as they were counted").defaulted(),
                 field("files_searched", &FileGrepResult::files_searched, "Files searched"),
                 field("files_matched", &FileGrepResult::files_matched, "Files with a match"),
                 field("truncated", &FileGrepResult::truncated, "There are more matches than returned").defaulted()};
};

template <>
struct Schema<FileGlobRequest> {
  static constexpr std::string_view name = "FileGlobRequest";
  static constexpr auto fields =
      std::tuple{field("path", &FileGlobRequest::path, "Directory"),
                 field("pattern", &FileGlobRequest::pattern, "Pattern: * ? [a-z] {a,b}, ** across directories"),
                 field("exclude", &FileGlobRequest::exclude, "Patterns to leave out"),
                 field("include_hidden", &FileGlobRequest::include_hidden, "Names that begin with a dot as well").defaulted(),
                 field("files_only", &FileGlobRequest::files_only, "No directories").defaulted(),
                 field("include_metadata", &FileGlobRequest::include_metadata, "Size and time").defaulted(),
                 field("max_results", &FileGlobRequest::max_results, "Files in the answer").min(1).max(50000).defaulted(),
                 field("sort_by", &FileGlobRequest::sort_by, "path, name, size or modified").defaulted(),
                 field("sort_desc", &FileGlobRequest::sort_desc, "The largest first").defaulted()};
};

template <>
struct Schema<GlobFileInfo> {
  static constexpr std::string_view name = "GlobFileInfo";
  static constexpr auto fields =
      std::tuple{field("path", &GlobFileInfo::path, "Absolute path"), field("name", &GlobFileInfo::name, "Its last segment"),
                 field("is_directory", &GlobFileInfo::is_directory, "Whether it is a directory").defaulted(),
                 field("size", &GlobFileInfo::size, "Bytes"), field("modified_time", &GlobFileInfo::modified_time, "RFC 3339")};
};

template <>
struct Schema<FileGlobResult> {
  static constexpr std::string_view name = "FileGlobResult";
  static constexpr auto fields = std::tuple{
      field("path", &FileGlobResult::path, "The absolute path"), field("pattern", &FileGlobResult::pattern, "The pattern"),
      field("files", &FileGlobResult::files, "What matches").defaulted(),
      field("total_count", &FileGlobResult::total_count, "Matches in all").defaulted(),
      field("truncated", &FileGlobResult::truncated, "There are more matches than returned").defaulted()};
};

template <>
struct Schema<FileListRequest> {
  static constexpr std::string_view name = "FileListRequest";
  static constexpr auto fields =
      std::tuple{field("path", &FileListRequest::path, "Directory"),
                 field("recursive", &FileListRequest::recursive, "Directories below as well").defaulted(),
                 field("show_hidden", &FileListRequest::show_hidden, "Names that begin with a dot as well").defaulted(),
                 field("file_types", &FileListRequest::file_types, "Files with one of these extensions only: .py"),
                 field("max_depth", &FileListRequest::max_depth, "Greatest depth, with recursive"),
                 field("include_size", &FileListRequest::include_size, "Sizes").defaulted(),
                 field("include_permissions", &FileListRequest::include_permissions, "Permissions, in octal").defaulted(),
                 field("sort_by", &FileListRequest::sort_by, "name, size, modified or type").defaulted(),
                 field("sort_desc", &FileListRequest::sort_desc, "The largest first").defaulted()};
};

template <>
struct Schema<FileInfo> {
  static constexpr std::string_view name = "FileInfo";
  static constexpr auto fields = std::tuple{field("name", &FileInfo::name, "Name"),
                                            field("path", &FileInfo::path, "Absolute path"),
                                            field("is_directory", &FileInfo::is_directory, "Whether it is a directory"),
                                            field("size", &FileInfo::size, "Bytes"),
                                            field("modified_time", &FileInfo::modified_time, "RFC 3339"),
                                            field("permissions", &FileInfo::permissions, "In octal: 644"),
                                            field("extension", &FileInfo::extension, "With its dot")};
};

template <>
struct Schema<FileListResult> {
  static constexpr std::string_view name = "FileListResult";
  static constexpr auto fields =
      std::tuple{field("path", &FileListResult::path, "The absolute path"),
                 field("files", &FileListResult::files, "What is there").defaulted(),
                 field("total_count", &FileListResult::total_count, "Entries in all").defaulted(),
                 field("directory_count", &FileListResult::directory_count, "Number of directories").defaulted(),
                 field("file_count", &FileListResult::file_count, "Files in all").defaulted()};
};

}  // namespace caisson::routes
