// Arguments and results of the tools sandbox_*, by the names that clients of AIO's use.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "agent/routes/schema.h"

namespace caisson::mcp {

inline constexpr std::array<std::string_view, 2> kPackageLanguages = {"python", "nodejs"};
inline constexpr std::array<std::string_view, 2> kCodeLanguages = {"python", "javascript"};
inline constexpr std::array<std::string_view, 6> kFileActions = {"read", "write", "list", "find", "replace", "search"};

struct PackagesArguments {
  std::optional<std::string> language;
};
struct BashArguments {
  std::string cmd;
  std::optional<std::string> cwd;
  bool new_session = false;
  double timeout = 30;
  bool preserve_symlinks = false;
  bool truncate = true;
};
struct BashResult {
  std::string status, output = {};
  std::optional<std::int64_t> exit_code;
  std::optional<std::string> cwd;
};
struct CodeArguments {
  std::string code, language = "python";
  std::optional<std::int64_t> timeout;
};
struct FileArguments {
  std::string action, path;
  std::optional<std::string> content, encoding, pattern, old_str, new_str;
  std::optional<std::int64_t> start_line, end_line, max_depth;
  std::optional<bool> append, recursive, show_hidden;
};

}  // namespace caisson::mcp

namespace caisson::routes {

template <>
struct Schema<mcp::PackagesArguments> {
  static constexpr std::string_view name = "GetPackagesArguments";
  static constexpr auto fields = std::tuple{
      field("language", &mcp::PackagesArguments::language, "Whose packages; of both when absent").one_of(mcp::kPackageLanguages)};
};
template <>
struct Schema<mcp::BashArguments> {
  static constexpr std::string_view name = "ExecuteBashArguments";
  static constexpr auto fields = std::tuple{
      field("cmd", &mcp::BashArguments::cmd, "Command for bash"),
      field("cwd", &mcp::BashArguments::cwd, "Directory to change to first"),
      field("new_session", &mcp::BashArguments::new_session,
            "Run it in a shell of its own, not in the one that keeps directory and variables between calls")
          .defaulted(),
      field("timeout", &mcp::BashArguments::timeout, "Seconds until the command is ended").above(0).max(86400).defaulted(),
      field("preserve_symlinks", &mcp::BashArguments::preserve_symlinks, "Keep symbolic links in the path of cwd").defaulted(),
      field("truncate", &mcp::BashArguments::truncate, "Cut the middle of an output over 30000 characters").defaulted()};
};
template <>
struct Schema<mcp::BashResult> {
  static constexpr std::string_view name = "ExecuteBashResult";
  static constexpr auto fields =
      std::tuple{field("status", &mcp::BashResult::status,
                       "completed; hard_timeout: the time was over, and the command was ended; terminated"),
                 field("output", &mcp::BashResult::output, "What it wrote, stdout and stderr as they came"),
                 field("exit_code", &mcp::BashResult::exit_code, "Exit code, when completed"),
                 field("cwd", &mcp::BashResult::cwd, "The shell's directory afterwards")};
};
template <>
struct Schema<mcp::CodeArguments> {
  static constexpr std::string_view name = "ExecuteCodeArguments";
  static constexpr auto fields = std::tuple{
      field("code", &mcp::CodeArguments::code, "Code to run"),
      field("language", &mcp::CodeArguments::language, "Language of the code").one_of(mcp::kCodeLanguages).defaulted(),
      field("timeout", &mcp::CodeArguments::timeout, "Seconds until the run is ended; 30 when absent").min(1).max(300)};
};
template <>
struct Schema<mcp::FileArguments> {
  static constexpr std::string_view name = "FileOperationsArguments";
  static constexpr auto fields = std::tuple{
      field("action", &mcp::FileArguments::action, "What to do").one_of(mcp::kFileActions),
      field("path", &mcp::FileArguments::path, "File, or directory of list and find; a relative one starts at the home"),
      field("content", &mcp::FileArguments::content, "write: the text"),
      field("encoding", &mcp::FileArguments::encoding, "write: utf-8, or base64 for bytes"),
      field("append", &mcp::FileArguments::append, "write: add to the end"),
      field("pattern", &mcp::FileArguments::pattern, "find: a glob; search: a regular expression"),
      field("old_str", &mcp::FileArguments::old_str, "replace: the text to be replaced"),
      field("new_str", &mcp::FileArguments::new_str, "replace: what takes its place"),
      field("start_line", &mcp::FileArguments::start_line, "read: first line, from 0"),
      field("end_line", &mcp::FileArguments::end_line, "read: the line before which to stop"),
      field("recursive", &mcp::FileArguments::recursive, "list: also what lies below"),
      field("max_depth", &mcp::FileArguments::max_depth, "list: how far below"),
      field("show_hidden", &mcp::FileArguments::show_hidden, "list: also names that begin with a dot")};
};

}  // namespace caisson::routes
