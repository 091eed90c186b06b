// Where audit logs lie, shared by the `audit` commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cli/args.h"
#include "launcher/cli/audit/show.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/result.h"

namespace caisson::cli {

// A word with a '/' is a file; else a session's id (or a file's name) in `directory`.
[[nodiscard]] std::string log_path(const std::string& directory, std::string_view word);
// The files of the log that a word names, in order: all segments of a session's, or that one file.
[[nodiscard]] std::vector<std::string> log_files(const std::string& directory, std::string_view word);

// The lines of a log, over its files.
class LogReader {
 public:
  [[nodiscard]] static Result<LogReader> open(std::vector<std::string> paths);
  // nullopt: no further whole line for now.
  [[nodiscard]] Result<std::optional<audit::Lines::Line>> next();
  // Behind a segment's end, while it is written: goes on with the one that follows, once it is there.
  [[nodiscard]] Result<bool> advance(unsigned ended_segment);
  [[nodiscard]] const Fd& fd() const { return lines_.fd(); }

 private:
  LogReader(std::vector<std::string> paths, audit::Lines lines) : paths_(std::move(paths)), lines_(std::move(lines)) {}
  std::vector<std::string> paths_;
  std::size_t at_ = 0;
  audit::Lines lines_;
};

// Left-aligned columns two spaces apart; the first row is the head.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);
// --event and --since, where a command has them.
[[nodiscard]] Result<audit::Filter> filter_of(const Args& args);
// The exit status after so many lines that are no records; says so.
[[nodiscard]] int status_of(std::uint64_t broken);
// Puts what a user can do behind an error of reading the audit directory.
[[nodiscard]] Error explain_access(Error error);

}  // namespace caisson::cli
