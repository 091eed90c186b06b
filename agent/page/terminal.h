// GET /terminal: xterm.js over /v1/shell/ws. The page asks for nothing that its query does not: session_id, readonly.
#pragma once

#include "agent/routes/route.h"

namespace caisson::routes::page {

[[nodiscard]] task<http::Response> get_terminal(Call call);

}  // namespace caisson::routes::page
