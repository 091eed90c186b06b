// Toolchains: the interpreters and compilers of the system, for the code of one workspace, listed once for it. Programs that a
// client installs into a home are not among them (ask_system). Extra versions lie below /opt/python/* and /opt/nodejs/*.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http/async_lock.h"
#include "agent/services/program/run_once.h"

namespace caisson::services {

enum class Language { python, javascript };
[[nodiscard]] std::string_view language_name(Language language);

struct InstalledVersion {
  std::string version;  // "3.11.2", "20.19.2"
  std::string path;
};

struct ToolInventory {
  std::vector<InstalledVersion> python, node;  // the default one first
  std::map<std::string, std::string> tools;    // name to path

  [[nodiscard]] const std::vector<InstalledVersion>& of(Language language) const {
    return language == Language::python ? python : node;
  }
  // As clients name a version: "" for the default, "3.12", "python3.12", "node22", "22", "v22.1". not_found: the error lists the
  // installed versions.
  [[nodiscard]] Result<InstalledVersion> choose(Language language, std::string_view wanted) const;
};

// Parses the output of agent/inside/toolchains.sh, which is not trusted: a line counts only if it names a program of that name in
// a directory of the system.
[[nodiscard]] ToolInventory parse_toolchains(std::string_view output);
// "python3.11", "node20": the name by which a version is asked for.
[[nodiscard]] std::string version_name(Language language, std::string_view version);
// A hint for requests for a Python that is not installed.
inline constexpr std::string_view kMorePythons =
    "other versions of Python are in an image that is built with --build-arg PYTHON_VERSIONS=\"3.10 3.11 3.12\"; "
    "any Python at /opt/python/NAME/bin/python3 is offered, and is a kernel where it has ipykernel";

class Toolchains {
 public:
  explicit Toolchains(bridge::LauncherClient& launcher) : launcher_(launcher) { forget(); }
  // The first call asks in a session of this workspace.
  [[nodiscard]] task<std::shared_ptr<const ToolInventory>> get(std::string workspace);
  // The packages of a Node.js: {npm, directory, packages: [{name, version}]}.
  [[nodiscard]] task<json::Value> node_packages(std::string workspace, std::string node);
  // Called when the policies, and therefore perhaps what sessions see, have changed, or when another workspace is served.
  void forget();

 private:
  // A caller keeps the set that it asked for, so an answer that arrives after forget() reaches only that caller.
  struct Known {
    explicit Known(const asio::any_io_executor& executor) : lock(executor) {}
    std::shared_ptr<const ToolInventory> inventory;
    std::map<std::string, json::Value> node_packages;
    http::AsyncLock lock;
  };
  bridge::LauncherClient& launcher_;
  std::shared_ptr<Known> known_;
};

}  // namespace caisson::services
