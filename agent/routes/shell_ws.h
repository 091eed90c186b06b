// WebSocket /v1/shell/ws: a terminal. Without ?session_id= each connection gets a session of its own, with one it joins that
// session. Text frames of JSON both ways:
//   server: {type: "session_id", data}, {type: "ready", data}, {type: "output", data}, {type: "ping", timestamp},
//           {type: "error", data}
//   client: {type: "input", data}, {type: "resize", data: {cols, rows}}, {type: "pong", ...}; cols and rows are taken at
//           top level too
// Leaving does not end the session. What a client asks for in its query:
//   flow=1      `ready` has offset (of the first byte that follows), end (of the output so far), window, readonly, cols and rows;
//               each `output` has offset, the position after its bytes. The client sends {type: "ack", data: {offset}} for what
//               it has shown, and gets at most `window` bytes ahead of that. {type: "size", data: {cols, rows}} tells a new size.
//               A program that a person started waits while every viewer is a window behind (services/shell/viewers.h).
//   offset=N    begins there: the offset of the last `output` that the client has.
//   readonly=1  input and resize are refused; needs session_id. Such a viewer never slows the program.
//               A credential that only watches (auth/principal.h) is always so, and its viewers end within a second of it.
// Offsets count bytes of the session's output, before they become text. {type: "gap", data: {from, to}} says that these bytes are
// no longer kept; if `from` is the later one, the offset was not of this session. Clients that name neither flow nor offset get
// no such message: one that reads slowly misses output, as ever. A character is never cut between two messages.
#pragma once

#include "agent/routes/route.h"

namespace caisson::routes {

[[nodiscard]] task<void> shell_ws(Call call, http::WebSocket socket);

}  // namespace caisson::routes
