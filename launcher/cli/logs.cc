#include "launcher/cli/logs.h"

#include <algorithm>

#include "launcher/cli/audit/verify.h"
#include "launcher/cli/commands.h"
#include "launcher/common/audit/log.h"
#include "launcher/common/base/sys.h"

namespace caisson::cli {

std::string log_path(const std::string& directory, std::string_view word) {
  if (word.contains('/')) return std::string(word);
  return directory + "/" + std::string(word) + (word.ends_with(".ndjson") ? "" : ".ndjson");
}

std::vector<std::string> log_files(const std::string& directory, std::string_view word) {
  const std::string path = log_path(directory, word);
  const auto slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  const auto logs = audit::logs_of(path.substr(0, slash + 1));
  if (!logs || audit::is_launcher_log(name) || !logs->contains(name)) return {path};
  return logs->at(name);
}

Result<LogReader> LogReader::open(std::vector<std::string> paths) {
  TRY_ASSIGN(audit::Lines lines, audit::Lines::open(paths.front()));
  return LogReader(std::move(paths), std::move(lines));
}

Result<std::optional<audit::Lines::Line>> LogReader::next() {
  for (;;) {
    TRY_ASSIGN(const auto line, lines_.next());
    if (line || at_ + 1 == paths_.size()) return line;
    TRY_ASSIGN(lines_, audit::Lines::open(paths_[++at_]));
  }
}

// The file that we hold has been renamed, perhaps more than one since: the next has its number, or is the last one.
Result<bool> LogReader::advance(unsigned ended_segment) {
  const std::string last = paths_.back(), stem = last.substr(0, last.size() - std::string_view(".ndjson").size());
  auto next = audit::Lines::open(stem + audit::segment_suffix(ended_segment + 1) + ".ndjson");
  if (!next) next = audit::Lines::open(last);
  if (!next && next.error().code == Code::not_found) return false;
  TRY_ASSIGN(lines_, std::move(next));
  return true;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line.append(row[i]).append(widths[i] + 2 - row[i].size(), ' ');
    out.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return out;
}

Result<audit::Filter> filter_of(const Args& args) {
  audit::Filter filter{.events = args.all("--event")};
  for (const std::string& name : filter.events)
    if (!audit::event_from(name)) return fail(Code::invalid_argument, "no such event: " + quote(name));
  if (const auto since = args.last("--since")) {
    auto time = audit::since_from(*since, sys::realtime_ns());
    if (!time) return fail(Code::invalid_argument, "--since takes an age (90s, 15m, 2h, 7d) or a UTC time, not " + quote(*since));
    filter.since = *std::move(time);
  }
  return filter;
}

int status_of(std::uint64_t broken) {
  if (broken == 0) return 0;
  std::fprintf(stderr, "caisson: %s lines are not records: run caisson audit verify\n", std::to_string(broken).c_str());
  return kExitBrokenLog;
}

Error explain_access(Error error) {
  if (error.sys == EACCES || error.sys == EPERM) error.what += " (audit logs are root's alone)";
  if (error.sys == ENOENT) error.what += " (another place: --audit DIR)";
  return error;
}

}  // namespace caisson::cli
