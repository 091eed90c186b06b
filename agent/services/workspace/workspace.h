// A workspace as the agent serves it: all of its services, each with limits of its own. This is the one place where they are
// made; a new service is a member here.
#pragma once

#include <memory>
#include <string>

#include "agent/services/browser/page_service.h"
#include "agent/services/browser/takeover.h"
#include "agent/services/code/code_service.h"
#include "agent/services/coding/coding.h"
#include "agent/services/desktop/recorder.h"
#include "agent/services/documents/documents.h"
#include "agent/services/files/file_watches.h"
#include "agent/services/notebook/jupyter_service.h"
#include "agent/services/observe/observer.h"
#include "agent/services/shell/bash_service.h"
#include "agent/services/shell/shell_service.h"
#include "agent/services/skills/skills.h"
#include "agent/services/workspace/hooks.h"
#include "agent/services/workspace/packages.h"

namespace caisson::services {

class McpHub;  // agent/services/mcp/mcp_hub.h

struct Workspace {
  Workspace(bridge::LauncherClient& launcher, const Config& config);
  ~Workspace();
  // Gives a slot to another workspace and forgets everything about the previous one, which has ended with all of its sessions.
  // Closes nothing by itself.
  void become(const std::string& new_name, const std::string& home);

  std::string name;
  std::string made;     // when the workspace was made
  Keep::Record record;  // of name and made
  bool paused = false;
  bool pacing = false;  // being paused or resumed
  BashService bash;
  ShellService shell;
  FileService file;
  FileWatches watches;
  JupyterService jupyter;
  CodeService code;
  DesktopService desktop;
  BrowserService browser;
  PageService pages;
  Takeover takeover;
  Recorder recorder;
  PackageLists packages;
  Hooks hooks;
  Observer observer;
  const std::unique_ptr<McpHub> mcp;
  Skills skills;
  Documents documents;
  Coding coding;
};
using WorkspacePtr = std::shared_ptr<Workspace>;

}  // namespace caisson::services
