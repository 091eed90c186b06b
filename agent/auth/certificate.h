// Certificate: the server's certificate and key, of two files of the operator's, which may be replaced while it runs. Those that
// cannot be used change nothing: the log says why, once, and the ones before stay in use.
#pragma once

#include <string>

#include "agent/http/tls_context.h"
#include "agent/http/watched_file.h"

namespace caisson::auth {

class Certificate {
 public:
  using Clock = http::WatchedFile::Clock;
  // Code::invalid_argument: they cannot be read, or not be used together.
  [[nodiscard]] static Result<Certificate> open(const std::string& certificates, const std::string& key);

  // For a connection that comes now.
  [[nodiscard]] http::TlsContext current(Clock::time_point now);

 private:
  Certificate(const std::string& certificates, const std::string& key) : certificates_(certificates), key_(key) {}
  // A file, with what is in it.
  struct Source {
    explicit Source(const std::string& path) : file(path, kMostBytes) {}
    [[nodiscard]] Result<bool> look(Clock::time_point now);  // whether it is new
    http::WatchedFile file;
    std::string text;
  };
  static constexpr std::size_t kMostBytes = 256 * 1024;
  [[nodiscard]] Status look(Clock::time_point now);

  Source certificates_, key_;
  http::TlsContext context_;
};

}  // namespace caisson::auth
