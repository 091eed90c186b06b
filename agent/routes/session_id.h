// Which session of the launcher a path names.
#pragma once

#include <string>

#include "agent/routes/route.h"
#include "agent/routes/services.h"
#include "agent/session/bash_service.h"
#include "agent/session/shell_service.h"

namespace caisson::routes {

// The launcher's id behind a session of the API; or what is named itself, for sessions that have ended and those of others: the
// launcher knows only those that are ours. "" when it can be none.
[[nodiscard]] inline std::string launcher_session(const Call& call) {
  const std::string id(call.request.param("session_id"));
  if (const auto bash = call.services.bash->find(id)) return bash->handle->id;
  if (const auto shell = call.services.shell->find(id)) return shell->handle->id;
  return id.size() <= 64 ? id : std::string();
}

}  // namespace caisson::routes
