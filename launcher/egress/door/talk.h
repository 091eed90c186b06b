// What a connection says until it is only relayed. Each of these ends with true: what follows is relayed as it is; or with false:
// the connection is over, and the client was told what it can understand.
#pragma once

#include <optional>
#include <string_view>

#include "launcher/common/base/task.h"
#include "launcher/egress/door/connection.h"
#include "launcher/egress/parse/http_head.h"

namespace caisson::egress {

// A connection to any address and port of the outside: to a name by its synthetic address, or to an address.
[[nodiscard]] Task<bool> talk_transparent(Connection& connection);
// One to the door's own port, which a session uses as its proxy: HTTP or SOCKS 5.
[[nodiscard]] Task<bool> talk_proxy(Connection& connection);
// Names by TCP.
[[nodiscard]] Task<bool> talk_names(Connection& connection);
// Requests of plain HTTP, each on its own. `only`: where all of them go; without it each says so itself, and CONNECT may be
// asked.
[[nodiscard]] Task<bool> talk_http(Connection& connection, std::optional<HostPort> only);
// After CONNECT or SOCKS has been answered: port 443 carries TLS to the name that was asked for, port 80 requests, any other port
// what it likes.
[[nodiscard]] Task<bool> talk_tunnel(Connection& connection, HostPort place);

// Reads into connection.ahead without taking it from later readers. False: the end, a failure, or time is over.
[[nodiscard]] Task<bool> read_more(Connection& connection, std::int64_t deadline_us);
// Reads the ClientHello and compares its name with `place`. False: refused, not told yet.
[[nodiscard]] Task<bool> hello_agrees(Connection& connection, HostPort place);

// Whether the connection to this place is one that the opener takes over, and its handing over: then it is not the door's any
// more.
[[nodiscard]] bool is_opened(const Connection& connection, const HostPort& place);
[[nodiscard]] Task<bool> hand_over(Connection& connection, HostPort place);

// Records the refusal that `facts` has and tells the client: as TLS or HTTP, where it speaks that, else by RST.
[[nodiscard]] Task<bool> turn_away(Connection& connection);
[[nodiscard]] Task<bool> turn_away_http(Connection& connection, bool with_body = true);
[[nodiscard]] Task<bool> turn_away_tls(Connection& connection);
[[nodiscard]] Task<bool> turn_away_at_once(Connection& connection);

}  // namespace caisson::egress
