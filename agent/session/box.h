// What a workspace has besides its shells: lists of packages, hooks, an observation of what it uses.
#pragma once

#include "agent/session/hooks.h"
#include "agent/session/observer.h"
#include "agent/session/packages.h"

namespace caisson::session {

struct Box {
  Box(bridge::LauncherClient& launcher, const Config& config)
      : packages(launcher, config), hooks(launcher, config), observer(launcher, config) {}
  void serve_workspace(const std::string& name, const std::string& home) {
    packages.serve_workspace(name, home);
    hooks.serve_workspace(name);
    observer.serve_workspace(name);
  }
  PackageLists packages;
  Hooks hooks;
  Observer observer;
};

}  // namespace caisson::session
