// A workspace as the agent serves it: its sessions of every kind, with limits of their own, and what else is its alone. The one
// place where its services are made; a new one is a member here.
#pragma once

#include <memory>
#include <string>

#include "agent/services/code/code_service.h"
#include "agent/services/files/file_watches.h"
#include "agent/services/notebook/jupyter_service.h"
#include "agent/services/observe/observer.h"
#include "agent/services/shell/bash_service.h"
#include "agent/services/shell/shell_service.h"
#include "agent/services/workspace/hooks.h"
#include "agent/services/workspace/packages.h"

namespace caisson::services {

struct Workspace {
  Workspace(bridge::LauncherClient& launcher, const Config& config);
  // Closes nothing by itself: for a slot whose workspace has ended, and with it every session. Nothing that was learnt in it
  // stays.
  void become(const std::string& new_name, const std::string& home);

  std::string name;
  std::string made;     // when its workspace was
  Keep::Record record;  // of these two
  bool paused = false;
  bool pacing = false;  // being paused or resumed
  BashService bash;
  ShellService shell;
  FileService file;
  FileWatches watches;
  JupyterService jupyter;
  CodeService code;
  PackageLists packages;
  Hooks hooks;
  Observer observer;
};
using WorkspacePtr = std::shared_ptr<Workspace>;

}  // namespace caisson::services
