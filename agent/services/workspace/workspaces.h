// The workspaces that this agent serves. What belongs to one is found through it alone, so a request that names another finds
// nothing. The launcher decides which there are.
#pragma once

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
  // Those that this agent knows, the standard one first.
  [[nodiscard]] std::vector<WorkspacePtr> known() const;
  // Runs the shutdown hooks of all of them side by side.
  [[nodiscard]] asio::awaitable<void> shut_down(bridge::Clock::time_point deadline);
  // Asks the launcher for a name that is not known here: the workspace may be older than this agent. not_found: there is none.
  [[nodiscard]] task<WorkspacePtr> find(std::string name);
  // Ends a workspace with all that is in it and makes it again as it was made first; whoever names it meanwhile waits. Errors:
  // what the launcher says, already_exists: it is under way. What fails between the two leaves no workspace.
  [[nodiscard]] task<json::Value> reset(std::string name);
  // Stops all that runs in it; wake() lets it go on, and who asks meanwhile waits. Errors: what the launcher says.
  [[nodiscard]] task<void> pause(std::string name);
  [[nodiscard]] task<void> wake(WorkspacePtr workspace);
  // Whether the default workspace is paused.
  [[nodiscard]] task<void> look();
  // Goes on with all that an agent before this one has left. To be called before anything else is served.
  [[nodiscard]] task<void> take_up();
  [[nodiscard]] bool resetting(const std::string& name) const { return resetting_.contains(name); }

 private:
  struct Pacing;
  [[nodiscard]] task<void> await_pace(WorkspacePtr workspace);
  void ended(const std::string& name);
  void policies_changed();

  bridge::LauncherClient& launcher_;
  std::unique_ptr<Keep> kept_file_;           // outlives the sessions below
  const std::shared_ptr<http::Budget> kept_;  // what the sessions of all workspaces have written, and what waits for them
  Config config_;
  WorkspacePtr standard_;
  std::set<std::string> resetting_;
  bridge::Notifier settled_;  // a reset, a pause or its end is over
  std::map<std::string, WorkspacePtr> named_;
  // Slots of workspaces that have ended, to be used again: coroutines of closed sessions may still refer to their services.
  std::vector<WorkspacePtr> free_;
};

}  // namespace caisson::services
