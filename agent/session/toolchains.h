// Toolchains: which interpreters and compilers the sessions that run code see, asked once in such a session. The same for every
// workspace: they come from the image. Extra ones lie below /opt/python/* and /opt/nodejs/*.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http/async_lock.h"
#include "agent/session/solo_session.h"

namespace caisson::session {

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
  // As clients name a version: "" for the default, "3.12", "python3.12", "node22", "22", "v22.1". not_found: says what there is.
  [[nodiscard]] Result<InstalledVersion> choose(Language language, std::string_view wanted) const;
};

// The output of agent/inside/toolchains.sh.
[[nodiscard]] ToolInventory parse_toolchains(std::string_view output);
// "python3.11", "node20": the name by which a version is asked for.
[[nodiscard]] std::string version_name(Language language, std::string_view version);

class Toolchains {
 public:
  // Asks in a session of this workspace when nobody has asked yet.
  [[nodiscard]] task<std::shared_ptr<const ToolInventory>> get(std::shared_ptr<CodeContext> context);
  // What comes with a Node.js: {npm, directory, packages: [{name, version}]}.
  [[nodiscard]] task<json::Value> node_packages(std::shared_ptr<CodeContext> context, std::string node);
  // The policies have changed: what sessions see may have, too.
  void forget();

 private:
  std::shared_ptr<const ToolInventory> inventory_;
  std::map<std::string, json::Value> node_packages_;
  std::unique_ptr<http::AsyncLock> lock_;
};

// What a program wrote that runs alone in a new session. limit, io: it wrote too much, or failed.
[[nodiscard]] task<std::string> output_of(std::shared_ptr<CodeContext> context, SoloSession::Place place,
                                          std::vector<std::string> argv);

}  // namespace caisson::session
