// WatchedFile: a small file of the operator's that may be replaced while the server runs, such as a list of keys. It is looked at
// no more than once a second, and read again when it is another file or has changed. The agent may read below /etc/caisson/auth,
// tls and mcp (launcher/seal/services/agent.json); no session sees these directories.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <string>

#include "launcher/common/base/result.h"

namespace caisson::http {

class WatchedFile {
 public:
  using Clock = std::chrono::steady_clock;
  // An empty path: no file.
  WatchedFile(std::string path, std::size_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {}

  // Its content, if it is not that of the look before; or why it cannot be read, once for each reason.
  [[nodiscard]] std::optional<Result<std::string>> look(Clock::time_point now);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] Result<std::optional<std::string>> read();
  std::string path_;
  std::size_t max_bytes_;
  Clock::time_point next_{};
  struct stat seen_{};  // st_ino 0: never read
  std::string content_, fault_;
};

}  // namespace caisson::http
