// What trusted proxies say of the client behind them. Anyone can send these headers, so they count only from a peer in
// CAISSON_TRUSTED_PROXIES; every other client is what its connection says. X-Forwarded-For, -Proto and -Host decide if one of
// them is there, otherwise Forwarded (RFC 7239). Pure functions, no I/O.
#pragma once

#include <string>

#include "agent/http/network.h"
#include "agent/http/request.h"

namespace caisson::http {

struct Client {
  std::string remote;              // address; the connection's own if no proxy is trusted
  std::string_view scheme;         // "http" or "https", as the client asked
  std::string host;                // as the client named it, with the port if it gave one; "" on HTTP/1.0 without Host
  std::string_view proxy_id = {};  // X-Request-Id of a trusted proxy, if it is plain and short
};

// The client is the rightmost address that is not a trusted proxy's: addresses to its left are its own claims. `headers` has
// passed check_head(), and the result may refer to it. `encrypted`: the connection itself is.
[[nodiscard]] Client client_of(const Pairs& headers, std::string_view peer, bool encrypted, const Networks& trusted);

}  // namespace caisson::http
