#include "launcher/cli/logs.h"

#include <dirent.h>

#include <algorithm>
#include <memory>

namespace caisson::cli {

std::string log_path(const std::string& directory, std::string_view word) {
  if (word.contains('/')) return std::string(word);
  return directory + "/" + std::string(word) + (word.ends_with(".ndjson") ? "" : ".ndjson");
}

Result<std::vector<std::string>> log_names(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(directory.c_str()), close);
  if (!dir) return sys_error("open audit directory " + quote(directory));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get()))
    if (std::string_view(entry->d_name).ends_with(".ndjson")) names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
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

Error explain_access(Error error) {
  if (error.sys == EACCES || error.sys == EPERM) error.what += " (audit logs are root's alone)";
  if (error.sys == ENOENT) error.what += " (another place: --audit DIR)";
  return error;
}

}  // namespace caisson::cli
