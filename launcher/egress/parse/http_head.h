// Heads of requests: to us as an explicit proxy (CONNECT, absolute form), and plain ones that were meant for a server (origin
// form).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/egress/list/host.h"
#include "launcher/egress/parse/http_fields.h"

namespace caisson::egress {

struct RequestHead {
  enum class Form { origin, absolute, authority, asterisk };  // authority: CONNECT
  Form form = Form::origin;
  std::string_view method;  // a view into the bytes, as are the fields
  // Where it goes: of absolute and authority form what the target says, else the Host field. Where both are, they are equal. Only
  // a request of HTTP/1.0 in origin form may have none.
  std::optional<Host> host;
  std::uint16_t port = 0;
  std::string target;  // to be sent on: origin form or '*'; empty for CONNECT
  int minor = 1;       // HTTP/1.x
  Framing body;        // none, length or chunked
  bool keep_alive = true;
  bool expect_continue = false;
  bool websocket = false;  // asks to switch to WebSocket: Connection and Upgrade are then to be sent on
  Fields fields;           // Host among them: whoever sends the head on writes it anew from host and port
};

// `bytes`: all that has come of the request so far.
Outcome read_request_head(std::string_view bytes, HeadScan& scan, RequestHead& head);
// Whether the method only reads (RFC 9110 9.2.1, without TRACE): what `read_only` rules permit.
[[nodiscard]] bool only_reads(std::string_view method);

// Whether it has a field by which some servers take a request for one with another method or path.
[[nodiscard]] bool has_override(const RequestHead& head);
[[nodiscard]] bool is_override(std::string_view field);

struct HostPort {
  Host host;
  std::uint16_t port = 0;
};
// "example.org:8080", "[::1]:80". No port: `otherwise`; 0 if there must be one. Userinfo is refused.
[[nodiscard]] std::optional<HostPort> read_host_port(std::string_view text, std::uint16_t otherwise);

}  // namespace caisson::egress
