// WebSocket /v1/shell/ws: a terminal. Without ?session_id= each connection gets a session of its own, with one it joins
// that session. Text frames of JSON both ways:
//   server: {type: "session_id", data}, {type: "ready", data}, {type: "output", data}, {type: "ping", timestamp},
//           {type: "error", data}
//   client: {type: "input", data}, {type: "resize", data: {cols, rows}}, {type: "pong", ...}; cols and rows are taken at
//           top level too
// A client that reads slowly gets a cut in the output, never a growing queue. Leaving does not end the session.
#pragma once

#include "agent/routes/route.h"

namespace caisson::routes {

[[nodiscard]] task<void> shell_ws(Call call, http::WebSocket socket);

}  // namespace caisson::routes
