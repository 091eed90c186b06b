// AgentStatus: whether the agent can serve, check by check, for /readyz. Set by main.cc and tool_probe.cc. A reason is for
// everybody who reaches the port: it names nothing of this host and no client.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace caisson::routes {

struct AgentStatus {
  struct Check {
    std::string_view name;
    bool passed = false;
    std::string why = {};  // it does not pass
  };
  Check launcher{"launcher", false, "the launcher has not answered yet"};
  Check sessions{"sessions", false, "no session has been started yet"};
  Check serving{"serving", true};  // fails while the server stops
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
};

}  // namespace caisson::routes
