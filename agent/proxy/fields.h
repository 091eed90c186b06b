// Pieces of header fields that requests and answers of the proxy share.
#pragma once

#include <string>
#include <string_view>

#include "agent/http/request.h"

namespace caisson::proxy {

// Whether a list header (all fields of that name together) has this lower-case element.
[[nodiscard]] bool list_has(const http::Pairs& headers, std::string_view name, std::string_view element);
// Whether a header ends at this hop (RFC 9110, section 7.6.1): by its name, or because Connection names it.
[[nodiscard]] bool is_hop_by_hop(const http::Pairs& headers, std::string_view name);
void add_field(std::string& out, std::string_view name, std::string_view value);
// A port in the one spelling that is accepted: decimal digits without a leading zero, 1 to 65535. 0: it is none.
[[nodiscard]] std::uint16_t port_from(std::string_view text);
// Whether `path` is `prefix` or lies below it.
[[nodiscard]] bool is_under(std::string_view path, std::string_view prefix);

}  // namespace caisson::proxy
