// Services: what handlers work with, made once by main.cc and alive for the whole process. Only declared here, so that a
// route includes just the service it uses. A pointer is null only in unit tests that do not need the service.
#pragma once

namespace caisson::bridge {
class LauncherClient;
}
namespace caisson::session {
class BashService;
struct Box;
class CodeService;
class FileService;
class FileWatches;
class JupyterService;
class ShellService;
class Workspaces;
}  // namespace caisson::session

namespace caisson::routes {

class SandboxInfo;
struct AgentStatus;

struct Services {
  AgentStatus* status = nullptr;               // routes/status.h
  SandboxInfo* sandbox = nullptr;              // routes/sandbox_info.h
  bridge::LauncherClient* launcher = nullptr;  // bridge/launcher_client.h
  session::BashService* bash = nullptr;
  session::ShellService* shell = nullptr;
  session::FileWatches* watches = nullptr;
  session::FileService* file = nullptr;
  session::JupyterService* jupyter = nullptr;
  session::CodeService* code = nullptr;
  session::Box* box = nullptr;  // session/box.h. From `bash` to here: of the workspace that the request names
  session::Workspaces* workspaces = nullptr;
};

}  // namespace caisson::routes
