// The table of all routes, assembled from the areas' tables.
#pragma once

#include <span>
#include <vector>

#include "agent/routes/route.h"

namespace caisson::routes {

using Area = std::span<const Route>;

[[nodiscard]] Area system_routes();          // routes/system.cc
[[nodiscard]] Area sandbox_routes();         // routes/sandbox.cc
[[nodiscard]] Area hook_routes();            // routes/hooks.cc
[[nodiscard]] Area observe_routes();         // routes/observe.cc
[[nodiscard]] Area bash_routes();            // routes/bash.cc
[[nodiscard]] Area shell_routes();           // routes/shell.cc
[[nodiscard]] Area file_routes();            // routes/file.cc
[[nodiscard]] Area file_lookup_routes();     // routes/file_lookup.cc
[[nodiscard]] Area file_watch_routes();      // routes/file_watch.cc
[[nodiscard]] Area file_editor_routes();     // routes/file_editor.cc
[[nodiscard]] Area file_transfer_routes();   // routes/file_transfer.cc
[[nodiscard]] Area jupyter_routes();         // routes/jupyter.cc
[[nodiscard]] Area code_routes();            // routes/code.cc
[[nodiscard]] Area nodejs_routes();          // routes/nodejs.cc
[[nodiscard]] Area run_code_routes();        // routes/run_code.cc
[[nodiscard]] Area browser_routes();         // routes/browser.cc
[[nodiscard]] Area page_operation_routes();  // routes/pages.cc
[[nodiscard]] Area cdp_routes();             // routes/cdp.cc
[[nodiscard]] Area vnc_routes();             // routes/vnc.cc
[[nodiscard]] Area display_routes();         // routes/display.cc
[[nodiscard]] Area takeover_routes();        // routes/takeover.cc
[[nodiscard]] Area proxy_routes();           // routes/proxy.cc
[[nodiscard]] Area ask_routes();             // routes/asks.cc
[[nodiscard]] Area attestation_routes();     // routes/attestation.cc
[[nodiscard]] Area sessions_routes();        // routes/sessions.cc
[[nodiscard]] Area workspace_routes();       // routes/workspaces.cc
[[nodiscard]] Area token_routes();           // routes/tokens.cc
[[nodiscard]] Area auth_routes();            // routes/auth.cc
[[nodiscard]] Area policy_routes();          // routes/policies.cc
[[nodiscard]] Area audit_routes();           // routes/audit.cc
[[nodiscard]] Area operate_routes();         // routes/operate.cc
[[nodiscard]] Area mcp_routes();             // mcp/routes.cc
[[nodiscard]] Area mcp_server_routes();      // mcp/server_routes.cc
[[nodiscard]] Area resource_metadata_routes();
[[nodiscard]] Area skill_routes();    // routes/skills.cc
[[nodiscard]] Area util_routes();     // routes/util.cc
[[nodiscard]] Area derived_routes();  // derive/routes.cc
[[nodiscard]] Area page_routes();     // page/page.cc

// In this order, assembled once.
[[nodiscard]] const std::vector<const Route*>& all_routes();

}  // namespace caisson::routes
