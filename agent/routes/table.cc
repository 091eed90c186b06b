#include "agent/routes/table.h"

namespace caisson::routes {

const std::vector<const Route*>& all_routes() {
  static const std::vector<const Route*> table = [] {
    std::vector<const Route*> rows;
    for (const Area area : {system_routes(),      sandbox_routes(),     hook_routes(),
                            observe_routes(),     bash_routes(),        shell_routes(),
                            file_routes(),        file_lookup_routes(), file_transfer_routes(),
                            file_editor_routes(), file_watch_routes(),  jupyter_routes(),
                            code_routes(),        nodejs_routes(),      run_code_routes(),
                            browser_routes(),     takeover_routes(),    display_routes(),
                            vnc_routes(),         cdp_routes(),         page_operation_routes(),
                            proxy_routes(),       ask_routes(),         attestation_routes(),
                            sessions_routes(),    workspace_routes(),   policy_routes(),
                            audit_routes(),       auth_routes(),        token_routes(),
                            operate_routes(),     mcp_routes(),         resource_metadata_routes(),
                            mcp_server_routes(),  skill_routes(),       util_routes(),
                            derived_routes(),     page_routes()})
      for (const Route& row : area) rows.push_back(&row);
    return rows;
  }();
  return table;
}

}  // namespace caisson::routes
