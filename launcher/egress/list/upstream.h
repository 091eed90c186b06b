// The proxy that a domain's connections go through. It changes the way, never what is permitted: the list is asked first, and
// as without it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/list.h"
#include "launcher/egress/list/pattern.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxPolicyPatterns = 64;  // of a policy, include and exclude each
inline constexpr std::size_t kMaxCredential = 255;     // bytes of the user, and of the password: what SOCKS 5 can say (RFC 1929)
// Of patterns_size(), include and exclude each: so one that is told, with its domain, is one message (kMaxText of
// common/egress/protocol.h).
inline constexpr std::size_t kMaxPatternBytes = 6 * 1024;

struct Upstream {
  enum class Kind { http, https, socks5 };  // https: HTTP CONNECT in TLS, by a certificate for the host (RFC 9110 9.3.6)
  Kind kind = Kind::http;
  Host host;
  std::uint16_t port = 0;
  std::string user, password;             // none: both are empty
  std::vector<Pattern> include, exclude;  // what goes through it: without the first all, but never the second
  // Where caisson-gate has the password from, or user:password: a file, or what a command of /bin/sh prints. Both empty: nowhere.
  std::string secret, command;
  bool resolve_here = false;  // names are resolved before they are handed to it; else by it
  bool of_policy = false;     // the policy names it; else the address must be one that the list permits
};
constexpr std::string_view words(Upstream::Kind) { return "http https socks5"; }

// "[http://|https://|socks5://][user:password@]host:port". In the form with a scheme, user and password are written with percent
// signs.
[[nodiscard]] Result<Upstream> read_server(std::string_view text);
// "user:password"; where `upstream` has a user already, the password alone, which may have colons.
[[nodiscard]] Status set_credential(Upstream& upstream, std::string_view text);
[[nodiscard]] std::string server_text(const Upstream& upstream);  // "host:port", with its scheme before it if that is not http
[[nodiscard]] bool goes_through(const Upstream& upstream, const Host& host);
// Whether a connection to the proxy may be made to this address. One of the policy: any but those of multicast and metadata; a
// loopback address only where it is written as one, so that no name server decides. Else what the list says.
[[nodiscard]] bool proxy_permitted(const List& list, const Upstream& upstream, const Address& address);

// What they take in upstream_bytes().
[[nodiscard]] std::size_t patterns_size(const std::vector<Pattern>& patterns);

// How caisson-gate tells the dialer. Both ends are built together; whatever is no upstream is refused.
[[nodiscard]] std::string upstream_bytes(const Upstream& upstream);
[[nodiscard]] Result<Upstream> read_upstream(std::string_view bytes);

}  // namespace caisson::egress
