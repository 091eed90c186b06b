// Services: the objects that handlers use, made once by main.cc; only `workspace` differs between requests. A pointer is null
// only in unit tests that do not need it.
#pragma once

#include <string>

namespace caisson::auth {
class Gate;
}
namespace caisson::bridge {
class LauncherClient;
class Openings;
}  // namespace caisson::bridge
namespace caisson::http {
class Server;
}
namespace caisson::proxy {
class Proxy;
}
namespace caisson::services {
struct Workspace;
class Workspaces;
}  // namespace caisson::services

namespace caisson::routes {

class SandboxInfo;
struct AgentStatus;

struct Services {
  auth::Gate* gate = nullptr;                  // auth/gate.h
  AgentStatus* status = nullptr;               // routes/status.h
  SandboxInfo* sandbox = nullptr;              // routes/sandbox_info.h
  bridge::LauncherClient* launcher = nullptr;  // bridge/launcher_client.h
  http::Server* server = nullptr;
  services::Workspaces* workspaces = nullptr;
  proxy::Proxy* proxy = nullptr;             // proxy/proxy.h
  bridge::Openings* openings = nullptr;      // bridge/openings.h
  services::Workspace* workspace = nullptr;  // the workspace that the request names, with its services
  std::string frame_ancestors = {};          // origins whose pages may frame /vnc/, separated by spaces
};

}  // namespace caisson::routes
