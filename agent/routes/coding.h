// /codex and /opencode: a terminal that begins with that program. The page leads to /terminal?start=NAME, and the terminal's own
// socket makes the session, with what the program needs, when the page has logged in. A name in an address is one of a table's;
// no address has a text that is typed.
#pragma once

#include <string>
#include <string_view>

#include "agent/bridge/launcher_types.h"
#include "agent/routes/route.h"
#include "agent/services/shell/shell_service.h"

namespace caisson::routes {

// The answer to GET /NAME.
[[nodiscard]] http::Response coding_page(const Call& call, std::string_view name);

// Makes a terminal and starts this program in it. Errors, which the person reads: the name is unknown; the program is not
// installed; its configuration cannot be written.
[[nodiscard]] task<services::ShellService::SessionPtr> start_coding(Call call, std::string name, bridge::PtySize size);

}  // namespace caisson::routes
