// SandboxInfo: what is known about the environment of the sessions. Filled at start (os-release, uname) and, once a
// session has listed its tools, by set_tools(); GET /v1/sandbox only reads it, so it answers at once under any load.
#pragma once

#include <string>

#include "agent/routes/sandbox_types.h"

namespace caisson::routes {

// The hook for whoever runs commands in a session: see kToolProbe and parse_tools().
struct ToolInventory {
  std::vector<ToolSpec> python, nodejs;
  std::vector<ToolCategory> utils;
};

// A POSIX shell script for a session: prints one line a found program, "name<TAB>path<TAB>first line of --version".
extern const char* const kToolProbe;
// Its output as an inventory. The output comes from inside a session and is not trusted: bounded, control characters out.
[[nodiscard]] ToolInventory parse_tools(std::string_view output);

struct SandboxSettings {
  std::string user = "gem";
  std::string home = "/home/gem";
  std::string workspace = "/home/gem";
  std::string timezone;  // empty: UTC
  unsigned short port = 8080;
};

class SandboxInfo {
 public:
  // Reads /etc/os-release (the image's, which the sessions share) and uname(2). Must run before requests are served.
  explicit SandboxInfo(SandboxSettings settings);
  void set_places(std::string home, std::string workspace);  // what the launcher's hello says
  void set_tools(ToolInventory tools) { tools_ = std::move(tools); }
  [[nodiscard]] SandboxResponse context() const;

 private:
  SandboxSettings settings_;
  std::string os_ = "Linux", os_version_, arch_;
  ToolInventory tools_;
};

}  // namespace caisson::routes
