// The table of every route the agent serves, put together from the areas' tables.
#pragma once

#include <span>
#include <vector>

#include "agent/routes/route.h"

namespace caisson::routes {

using Area = std::span<const Route>;

[[nodiscard]] Area system_routes();       // routes/system.cc
[[nodiscard]] Area sandbox_routes();      // routes/sandbox.cc
[[nodiscard]] Area hook_routes();         // routes/hooks.cc
[[nodiscard]] Area observe_routes();      // routes/observe.cc
[[nodiscard]] Area bash_routes();         // routes/bash.cc
[[nodiscard]] Area shell_routes();        // routes/shell.cc
[[nodiscard]] Area attestation_routes();  // routes/attestation.cc
[[nodiscard]] Area sessions_routes();     // routes/sessions.cc
[[nodiscard]] Area workspace_routes();    // routes/workspaces.cc
[[nodiscard]] Area policy_routes();       // routes/policies.cc
[[nodiscard]] Area audit_routes();        // routes/audit.cc
[[nodiscard]] Area docs_routes();         // derive/docs.cc
[[nodiscard]] Area page_routes();         // page/page.cc

// In this order; made once.
[[nodiscard]] const std::vector<const Route*>& all_routes();

}  // namespace caisson::routes
