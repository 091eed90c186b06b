// Services: what handlers work with, made by main.cc once for the whole process; `workspace` differs between requests. A pointer
// is null only in unit tests that do not need it.
#pragma once

namespace caisson::bridge {
class LauncherClient;
}
namespace caisson::services {
struct Workspace;
class Workspaces;
}  // namespace caisson::services

namespace caisson::routes {

class SandboxInfo;
struct AgentStatus;

struct Services {
  AgentStatus* status = nullptr;               // routes/status.h
  SandboxInfo* sandbox = nullptr;              // routes/sandbox_info.h
  bridge::LauncherClient* launcher = nullptr;  // bridge/launcher_client.h
  services::Workspaces* workspaces = nullptr;
  services::Workspace* workspace = nullptr;  // the one that the request names, and all that serves it
};

}  // namespace caisson::routes
