// SandboxInfo: facts about the environment of the sessions. Filled at start (os-release, uname) and by set_tools(), once a
// session has listed its tools. GET /v1/sandbox only reads it, so it answers at once under any load.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/routes/sandbox_types.h"

namespace caisson::routes {

// The caller runs kToolProbe in a session and passes its output to parse_tools().
struct ToolInventory {
  std::vector<ToolSpec> python, nodejs;
  std::vector<ToolCategory> utils;
  std::map<std::string, std::string, std::less<>> coding;  // by name the version of a coding agent; "": unknown
};

// A POSIX shell script for a session: prints one line for each program found, "name<TAB>path<TAB>first line of --version".
extern const char* const kToolProbe;
// Turns its output into an inventory. The output comes from a session and is not trusted: it is bounded, and control characters
// are removed.
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
  void set_places(std::string home, std::string workspace);  // from the launcher's hello
  void set_tools(ToolInventory tools);
  // The version of a coding agent among the system's programs; "": unknown. nullopt: it is not installed, or nobody has looked
  // yet.
  [[nodiscard]] std::optional<std::string> coding_version(std::string_view name) const;
  [[nodiscard]] SandboxResponse context() const;
  // The same as JSON. It changes only with the places and tools, so it is made once.
  [[nodiscard]] const std::string& text() const;

 private:
  SandboxSettings settings_;
  std::string os_ = "Linux", os_version_, arch_;
  ToolInventory tools_;
  mutable std::string text_;
};

}  // namespace caisson::routes
