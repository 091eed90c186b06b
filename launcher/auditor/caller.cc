#include "launcher/auditor/caller.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace caisson::auditor {
namespace {

// The rest of the line that begins with `name`, a colon and a tab.
std::string_view field(std::string_view status, std::string_view name) {
  for (std::size_t at = 0; at < status.size();) {
    const std::size_t end = std::min(status.find('\n', at), status.size());
    const std::string_view line = status.substr(at, end - at);
    if (line.size() > name.size() + 1 && line.starts_with(name) && line[name.size()] == ':') return line.substr(name.size() + 2);
    at = end + 1;
  }
  return {};
}

// The last number of a line: NSpid and NStgid list every namespace, the innermost last.
int last_number(std::string_view line) {
  if (const std::size_t tab = line.find_last_of("\t "); tab != std::string_view::npos) line = line.substr(tab + 1);
  int value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return value;
}

}  // namespace

Caller parse_status(int tid, std::string_view status) {
  return {.tid = tid,
          .pid = last_number(field(status, "Tgid")),
          .session_tid = last_number(field(status, "NSpid")),
          .session_pid = last_number(field(status, "NStgid")),
          .comm = std::string(field(status, "Name"))};
}

Caller read_caller(int proc, int tid) {
  char text[2048];  // the lines that matter are the first
  ssize_t size = -1;
  if (const int fd = ::openat(proc, (std::to_string(tid) + "/status").c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
    size = ::read(fd, text, sizeof text);
    ::close(fd);
  }
  return parse_status(tid, {text, size > 0 ? static_cast<std::size_t>(size) : 0});
}

}  // namespace caisson::auditor
