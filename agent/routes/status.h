// AgentStatus: whether the agent can serve, for /readyz. Set by main.cc as things come and go.
#pragma once

#include <string>

namespace caisson::routes {

struct AgentStatus {
  bool ready = false;
  std::string reason = "the launcher has not answered yet";  // why not, when not
};

}  // namespace caisson::routes
