// The workspaces that this agent serves. The services of one are reachable only through it, so a request that names another
// cannot find its sessions. The launcher decides which workspaces exist.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/services/workspace/workspace.h"

namespace caisson::services {

class Workspaces {
 public:
  Workspaces(bridge::LauncherClient& launcher, Config config);
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  [[nodiscard]] const WorkspacePtr& standard() const { return standard_; }
  // The workspaces that this agent knows, the default one first.
  [[nodiscard]] std::vector<WorkspacePtr> known() const;
  // Runs the shutdown hooks of all of them side by side.
  [[nodiscard]] asio::awaitable<void> shut_down(bridge::Clock::time_point deadline);
  // Asks the launcher for a name that is unknown here, because the workspace may be older than this agent. not_found: there is
  // none.
  [[nodiscard]] task<WorkspacePtr> find(std::string name);
  // Ends a workspace with everything in it and makes it anew with its first settings; requests that name it meanwhile wait.
  // Errors: the launcher's; already_exists: a reset is under way. A failure between the two leaves no workspace.
  [[nodiscard]] task<json::Value> reset(std::string name);
  // Stops every process in it; wake() lets them continue. Requests wait meanwhile. Errors: the launcher's.
  [[nodiscard]] task<void> pause(std::string name);
  [[nodiscard]] task<void> wake(WorkspacePtr workspace);
  // Finds out whether the default workspace is paused.
  [[nodiscard]] task<void> look();
  // Takes over from the previous agent. Must be called before any request is served.
  [[nodiscard]] task<void> take_up();
  // The budget of what is kept for all of them.
  [[nodiscard]] const http::Budget& kept() const { return *kept_; }
  // Told of each workspace that has ended, known here or not, however it ended.
  std::function<void(const std::string& name)> on_end = [](const std::string&) {};
  // Told of each workspace that has ended, or is about to be paused.
  std::function<void(const std::string& name)> on_stop = [](const std::string&) {};
  // Told of each reload of the policies.
  std::function<void()> on_policies = [] {};
  [[nodiscard]] bool resetting(const std::string& name) const { return resetting_.contains(name); }

 private:
  struct Pacing;
  [[nodiscard]] task<void> await_pace(WorkspacePtr workspace);
  void ended(const std::string& name);
  void policies_changed();

  bridge::LauncherClient& launcher_;
  std::unique_ptr<Keep> kept_file_;           // outlives the sessions below
  const std::shared_ptr<http::Budget> kept_;  // output and waiting input of all workspaces
  Config config_;
  WorkspacePtr standard_;
  std::set<std::string> resetting_;
  bridge::Notifier settled_;  // a reset, a pause or its end is over
  std::map<std::string, WorkspacePtr> named_;
  // Slots of ended workspaces, for reuse: coroutines of closed sessions may still refer to their services.
  std::vector<WorkspacePtr> free_;
};

}  // namespace caisson::services
