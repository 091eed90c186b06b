// Which session of the launcher a path names.
#pragma once

#include <string>

#include "agent/routes/route.h"
#include "agent/routes/services.h"
#include "agent/services/shell/bash_service.h"
#include "agent/services/shell/shell_service.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {

// The launcher's id behind a session of the API; or what is named itself, for sessions that have ended and those of others: the
// launcher knows only those that are ours. "" when it can be none.
[[nodiscard]] inline std::string launcher_session(const Call& call) {
  const std::string id(call.request.param("session_id"));
  if (const auto bash = call.services.workspace->bash.find(id)) return bash->handle->id;
  if (const auto shell = call.services.workspace->shell.find(id)) return shell->handle->id;
  return id.size() <= 64 ? id : std::string();
}

}  // namespace caisson::routes
