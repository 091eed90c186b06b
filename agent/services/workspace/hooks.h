// Commands of clients or the operator for events in a workspace's life. Each runs in a session of its own, of domain bash, with
// that workspace's home: inside the same walls as a client's command, and in the audit log under its name. A failure is reported
// and delays nothing beyond the hook's time limit.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/keep.h"
#include "agent/services/common/service_limits.h"

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

  // Replaces a hook of the same name. permission_denied: that one is the operator's; limit: there are too many.
  Status add(Hook hook);
  // Errors: not_found, permission_denied.
  Status remove(const std::string& name);
  // In the order in which they run. event "": all.
  [[nodiscard]] std::vector<Hook> list(std::string_view event) const;
  // Runs the hooks of an event, lower priorities first, equal ones side by side; none begins after the deadline or runs past it.
  // Code::io names all failures and their reasons.
  [[nodiscard]] task<void> run(std::string event, bridge::Clock::time_point deadline);
  // Runs the hooks for the end, within a time limit of their own.
  [[nodiscard]] task<void> end();
  // The failures of an event's last run; "": none.
  [[nodiscard]] std::string failures() const;
  // Restores a hook of the previous agent.
  void restore(Keep::Left left);
  // The hooks of the ended workspace are forgotten.
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

// The operator's hooks: RUN_HOOK_INIT, RUN_HOOK_PRE_SERVICES, RUN_HOOK_POST_READY, each with CAISSON_HOOK_SECONDS. Errors name
// the variable.
[[nodiscard]] Result<std::vector<Hook>> hooks_from_env();

}  // namespace caisson::services
