// Answers to MCP clients as streams of Server-Sent Events.
#pragma once

#include "agent/mcp/forward.h"

namespace caisson::mcp {

// Has a server carry out a request. The answer is JSON if the result is the first that the server says, or if the client takes no
// stream; else a stream that ends with the result. A client of a session that leaves may fetch the rest by its stream's id; the
// request of one without a session is called off then.
[[nodiscard]] task<http::Response> answer_in_stream(Call call, Client client, Message message);

// subscriptions/listen: says what it will tell of, and then tells it until the client leaves.
[[nodiscard]] task<http::Response> answer_listener(Call call, Client client, Message message);

// What is sent unasked to a session; or, with Last-Event-ID, the rest of the stream that broke. Of several connections to one
// stream the newest has it.
[[nodiscard]] task<http::Response> stream_of_session(Call call, ClientSessionPtr session);

}  // namespace caisson::mcp
