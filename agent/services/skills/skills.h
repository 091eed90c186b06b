// Skills: folders with a SKILL.md, which tell an agent how to do something, below one folder of the workspace (AIO_SKILLS_PATH).
// The folders are all that there is of them: they live as long as the home, and a skill that a session puts there is one.
// Archives and front matter are read by agent/worker/skills.py in a session of the domain `file`; what a skill needs is installed
// by commands in sessions of the domain `bash`, once, when it is registered.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/http/async_lock.h"
#include "agent/services/common/service_limits.h"
#include "launcher/common/base/json.h"

namespace caisson::services {

struct DependencyResult {
  std::vector<std::string> command;
  bool success = false;
  std::optional<std::string> out, err;
};

struct Skill {
  std::string name, path;  // absolute, of its folder
  json::Value metadata = json::Value::object();
  std::vector<DependencyResult> dependencies;
};

struct SkillContent {
  std::string name, path, content;  // without front matter
};

struct SkillList {
  std::vector<Skill> skills;
  std::string problems;  // of folders whose SKILL.md cannot be read; "": none
};

// What is registered: an upload, or a path in the workspace.
struct SkillSource {
  std::string filename, bytes;  // a zip archive, or a SKILL.md
  std::string path;             // a folder with a SKILL.md or with such folders, or a file; "": the upload
  std::string name;             // of the only skill; "": front matter or file name have it
};

class Skills {
 public:
  static constexpr std::size_t kMostUpload = 16 * 1024 * 1024;  // as skills.py has it

  Skills(bridge::LauncherClient& launcher, const Config& config);

  // All skills of the source, or none. One of the same name is replaced. A command that fails is a result, not an error.
  [[nodiscard]] task<std::vector<Skill>> add(SkillSource source);
  // names: of those that are asked for; none: of all.
  [[nodiscard]] task<SkillList> list(std::vector<std::string> names);
  [[nodiscard]] task<SkillContent> content(std::string name);
  [[nodiscard]] task<Skill> remove(std::string name);
  [[nodiscard]] task<std::vector<std::string>> clear();
  void serve_workspace(std::string name);

 private:
  task<json::Value> ask(std::string op, json::Value job, std::string body = "");
  task<std::vector<DependencyResult>> install(Skill skill, json::Value commands, bridge::Clock::time_point deadline);

  bridge::LauncherClient& launcher_;
  std::string workspace_, root_;
  std::shared_ptr<http::AsyncLock> lock_;  // of what changes them; a waiter may outlive the workspace
};

}  // namespace caisson::services
