// A fresh directory for one test's logs, and the log of a short session.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/sys.h"

namespace caisson::audit {

class LogDir {
 public:
  LogDir() {
    char name[] = "/tmp/caisson-audit-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  LogDir(const LogDir&) = delete;
  ~LogDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name + ".ndjson"; }
  [[nodiscard]] std::string read(const std::string& name) const {
    return sys::read_file(file(name), 64 << 20).value_or("unreadable");
  }

 private:
  std::string path_;
};

// A session of four records, the last one its end.
inline Log small_log(const LogDir& dir, const std::string& name = "s-1") {
  auto log = Log::create(dir.path(), name);
  EXPECT_TRUE(log.has_value());
  EXPECT_TRUE(log->append(Event::session_request, {{"session", name}, {"domain", "bash"}}));
  EXPECT_TRUE(log->append(Event::session_start, {{"session", name}, {"tier", "T3"}}));
  EXPECT_TRUE(log->append(Event::exec_request, {{"argv", {"bash", "-c", "true"}}, {"cwd", "/home/gem"}}));
  EXPECT_TRUE(log->append(Event::session_end, {{"reason", "destroyed"}}));
  return std::move(*log);
}

}  // namespace caisson::audit
