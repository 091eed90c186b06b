#include "agent/services/workspace/workspace.h"

#include "agent/services/mcp/mcp_hub.h"

namespace caisson::services {

Workspace::Workspace(bridge::LauncherClient& launcher, const Config& config)
    : name(config.workspace),
      bash(launcher, config),
      shell(launcher, config),
      file(launcher, config),
      watches(file, launcher, config),
      jupyter(launcher, config),
      code(launcher, config),
      desktop(launcher, config),
      browser(launcher, config, desktop),
      pages(launcher, config, browser, file),
      takeover(launcher.executor()),
      recorder(launcher, config, desktop, file),
      packages(launcher, config),
      hooks(launcher, config),
      observer(launcher, config),
      mcp(std::make_unique<McpHub>(launcher, config)),
      skills(launcher, config),
      documents(launcher, config, file),
      coding(launcher, config, file) {}

Workspace::~Workspace() = default;

void Workspace::become(const std::string& new_name, const std::string& home) {
  name = new_name;
  paused = false;
  bash.serve_workspace(new_name, home);
  shell.serve_workspace(new_name, home);
  file.serve_workspace(new_name);
  watches.serve_workspace(new_name);
  jupyter.serve_workspace(new_name, home);
  code.serve_workspace(new_name);
  desktop.serve_workspace(new_name);
  browser.serve_workspace(new_name);
  pages.serve_workspace(new_name);
  takeover.end();
  recorder.serve_workspace();
  packages.serve_workspace(new_name, home);
  hooks.serve_workspace(new_name);
  observer.serve_workspace(new_name);
  mcp->serve_workspace(new_name);
  skills.serve_workspace(new_name);
  documents.serve_workspace(new_name);
  coding.serve_workspace(new_name);
}

}  // namespace caisson::services
