// The configuration of a workspace's coding agents: files in its home, written when a page starts one. A file that somebody has
// written or edited is never touched: what is written here begins with a line that has its size and digest.
#pragma once

#include <memory>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/services/coding/coding_settings.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/files/file_service.h"

namespace caisson::services {

class Coding {
 public:
  Coding(bridge::LauncherClient& launcher, const Config& config, FileService& files);

  // Leaves the files of this agent (a name in kCodingAgents) in the home. version: of the program that is installed; "": unknown.
  [[nodiscard]] task<void> prepare(std::string name, std::string version);
  void serve_workspace(std::string name) { workspace_ = std::move(name); }

 private:
  [[nodiscard]] const CodingSettings& settings() const;
  [[nodiscard]] task<void> write(std::string path, std::string content);
  [[nodiscard]] task<void> write_unless_edited(std::string path, std::string comment, std::string content);

  bridge::LauncherClient& launcher_;
  FileService& files_;
  const std::shared_ptr<const CodingSettings> settings_;  // of the workspace `default`
  std::string workspace_;
};

}  // namespace caisson::services
