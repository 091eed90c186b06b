// The head of a request as the app gets it: without what ends at this hop, without any credential of ours, and with X-Forwarded-*
// of our own. Pure functions.
#pragma once

#include <string>

#include "agent/http/request.h"
#include "agent/proxy/destination.h"

namespace caisson::proxy {

// Whether the client asks for a WebSocket (RFC 6455, section 4.1). Other upgrades are not offered to the app.
[[nodiscard]] bool asks_websocket(const http::Request& request);
// Whether a body follows; its framing has been checked.
[[nodiscard]] bool has_body(const http::Request& request);
// Whether it may be sent a second time if the first has got no answer: idempotent (RFC 9110, section 9.2.2), and without a body.
[[nodiscard]] bool is_repeatable(const http::Request& request);
[[nodiscard]] bool is_chunked(const http::Request& request);
// drop_authorization: the header identified the client to us, or could have.
[[nodiscard]] std::string request_head(const http::Request& request, const Destination& to, bool drop_authorization);
// The query as sent without api_key and ticket; with its question mark.
[[nodiscard]] std::string query_for_app(const http::Request& request);

}  // namespace caisson::proxy
