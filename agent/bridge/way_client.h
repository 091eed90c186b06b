// What the agent asks about a workspace's way out: of caisson-gate, over lines that the launcher hands out. The gate decides by
// the policy; the agent keeps nothing of it, least of all a proxy's credential.
#pragma once

#include <string>

#include "agent/bridge/launcher_client.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::bridge {

// request: of launcher/common/tables/way_ops.h. Opens the workspace's way out where it has none yet. Errors: the gate's;
// permission_denied, where no domain of the policy goes out.
[[nodiscard]] task<json::Value> ask_way(LauncherClient& launcher, std::string workspace, json::Value request);
// As ask_way(), for an operation that only looks: it makes no way out. Errors: unavailable, where the workspace has none yet.
[[nodiscard]] task<json::Value> look_at_way(LauncherClient& launcher, std::string workspace, way::Op op,
                                            json::Value request = json::Value::object());

}  // namespace caisson::bridge
