// The workspaces as the agent serves them: for each its own sessions of every kind, with limits of their own. What belongs to
// one is found through it alone, so a request that names another finds nothing. The launcher decides which there are.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/session/bash_service.h"
#include "agent/session/box.h"
#include "agent/session/code_service.h"
#include "agent/session/file_watches.h"
#include "agent/session/jupyter_service.h"
#include "agent/session/shell_service.h"

namespace caisson::session {

struct Tenant {
  Tenant(bridge::LauncherClient& launcher, const Config& config, Toolchains& toolchains);
  // Closes nothing by itself: for a slot whose workspace has ended, and with it every session.
  void become(const std::string& new_name);

  std::string name;
  BashService bash;
  ShellService shell;
  FileService file;
  FileWatches watches;
  JupyterService jupyter;
  CodeService code;
  Box box;
};
using TenantPtr = std::shared_ptr<Tenant>;

class Tenants {
 public:
  Tenants(bridge::LauncherClient& launcher, Config config);
  ~Tenants();
  Tenants(const Tenants&) = delete;
  Tenants& operator=(const Tenants&) = delete;

  [[nodiscard]] const TenantPtr& standard() const { return standard_; }
  // Those that this agent knows, the standard one first.
  [[nodiscard]] std::vector<TenantPtr> known() const;
  // Runs the shutdown hooks of all of them side by side.
  [[nodiscard]] asio::awaitable<void> shut_down(bridge::Clock::time_point deadline);
  // Asks the launcher for a name that is not known here: the workspace may be older than this agent. not_found: there is none.
  [[nodiscard]] task<TenantPtr> find(std::string name);

 private:
  void ended(const std::string& name);
  void policies_changed();

  bridge::LauncherClient& launcher_;
  Config config_;
  Toolchains toolchains_;
  TenantPtr standard_;
  std::map<std::string, TenantPtr> named_;
  // Slots of workspaces that have ended, to be used again: coroutines of closed sessions may still refer to their services.
  std::vector<TenantPtr> free_;
};

}  // namespace caisson::session
