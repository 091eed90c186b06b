// What the rule that allows a host says of one request to it, where requests are seen: at the door in plain HTTP, at the opener
// in TLS that it has opened.
#pragma once

#include <string_view>

#include "launcher/egress/list/list.h"
#include "launcher/egress/parse/http_head.h"

namespace caisson::egress {

// Whether a rule limits what is asked for, so that each request has to be read.
[[nodiscard]] bool limits_requests(const List& list, const Verdict& verdict);

struct Objection {
  Refusal refusal = Refusal::none;  // none: it may go; else method, path or framing
  std::string_view detail;          // a literal
};
// verdict: of decide(), which allowed the host.
[[nodiscard]] Objection objection_to(const RequestHead& head, const List& list, const Verdict& verdict);

// Whether the connection to the server is for no other request after this one: a server that leaves the body unread would take it
// for the next, and its answer would be the next one's.
[[nodiscard]] bool is_last(const RequestHead& head, const List& list, const Verdict& verdict);

}  // namespace caisson::egress
