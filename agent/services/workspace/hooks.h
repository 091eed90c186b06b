// Commands that clients or the operator have run at turns of a workspace's life. Each runs in a session of its own, of domain
// bash, with that workspace's home: whatever a hook does, it does inside the same walls as a command of a client's, and the
// audit log has it under its name. A hook that fails is said and holds nothing up longer than its time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/config.h"
#include "agent/services/common/keep.h"

namespace caisson::services {

struct Hook {
  std::string name;
  std::string event = "shutdown";
  std::string command;
  double timeout = 10;  // seconds
  std::int64_t priority = 100;
  std::string source = "api";      // or "env": from the operator's environment, not to be removed by a client
  std::optional<bridge::End> end;  // of its last run
};

class Hooks {
 public:
  static constexpr std::size_t kMost = 64;  // of one workspace
  static constexpr std::string_view kShutdown = "shutdown", kInit = "init", kPreServices = "pre_services",
                                    kPostReady = "post_ready";

  Hooks(bridge::LauncherClient& launcher, Config config);

  // One of that name is replaced. permission_denied: it is the operator's; limit: there are too many.
  Status add(Hook hook);
  // not_found, permission_denied.
  Status remove(const std::string& name);
  // In the order in which they run. event "": all.
  [[nodiscard]] std::vector<Hook> list(std::string_view event) const;
  // Runs those of an event, lower priorities first, equal ones side by side; none begins behind the deadline, nor runs past it.
  // Code::io naming all that failed and why.
  [[nodiscard]] task<void> run(std::string event, bridge::Clock::time_point deadline);
  // Those for the end, within a time of their own.
  [[nodiscard]] task<void> end();
  // What the last run of each event said of failures, "" for none.
  [[nodiscard]] std::string failures() const;
  // One that an agent before has left.
  void restore(Keep::Left left);
  // Those of an ended workspace go with it.
  void serve_workspace(std::string name);

 private:
  struct Turn;
  void save(const Hook& hook);
  static task<void> run_one(bridge::LauncherClient& launcher, Config config, Hook hook, bridge::Clock::time_point deadline,
                            std::shared_ptr<Turn> turn);

  bridge::LauncherClient& launcher_;
  Config config_;
  std::map<std::string, Hook> hooks_;
  std::map<std::string, Keep::Record> kept_;   // by name; clients' alone
  std::map<std::string, std::string> failed_;  // by event
};

// The operator's: RUN_HOOK_INIT, RUN_HOOK_PRE_SERVICES, RUN_HOOK_POST_READY, each with CAISSON_HOOK_SECONDS. Errors name the
// variable.
[[nodiscard]] Result<std::vector<Hook>> hooks_from_env();

}  // namespace caisson::services
