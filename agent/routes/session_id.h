// The launcher's session that a path names.
#pragma once

#include <string>

#include "agent/routes/route.h"
#include "agent/routes/services.h"
#include "agent/services/shell/bash_service.h"
#include "agent/services/shell/shell_service.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {

// The launcher's id of a session of the API. Any other valid id is returned unchanged: it may name an ended session, and the
// launcher answers only about ours. "": not a valid id.
[[nodiscard]] inline std::string launcher_session(const Call& call) {
  const std::string id(call.request.param("session_id"));
  if (const auto bash = call.services.workspace->bash.find(id)) return bash->handle->id;
  if (const auto shell = call.services.workspace->shell.find(id)) return shell->handle->id;
  return id.size() <= 64 ? id : std::string();
}

}  // namespace caisson::routes
