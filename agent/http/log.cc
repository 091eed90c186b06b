#include "agent/http/log.h"

#include <string>

#include <poll.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"

namespace caisson::log {
namespace {

// One write(2) for each line, so that lines of several processes on one stderr do not mix. Control characters become spaces: a
// client cannot forge a second line.
void line(std::string_view level, std::string_view text) {
  std::string out = sys::rfc3339(sys::realtime_ns());
  out.append(" caisson-agent ").append(level).append(": ").append(text.substr(0, 2000));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  out += '\n';
  // A reader of stderr that stops must not stop the agent: poll() says that a pipe takes at least PIPE_BUF bytes without
  // blocking.
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) == 0) return;
  (void)!::write(STDERR_FILENO, out.data(), out.size());  // nowhere to report that the log is gone
}

}  // namespace

void info(std::string_view text) { line("info", text); }
void warn(std::string_view text) { line("warning", text); }
void error(std::string_view text) { line("error", text); }

}  // namespace caisson::log
