// Messages between the launcher (its hand for this, caisson-gate) and the processes of caisson-egress, and between these.
// Each runs over a SOCK_SEQPACKET pair of its own; fixed native structs, then text. Both ends are built together. What comes is
// checked: a message that is not one of these ends the connection, and with it the process at the other end. The sockets are
// those of common/capture/capture.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::egress {

inline constexpr int kLauncherFd = 3;  // of each: its pair with the launcher
inline constexpr std::size_t kMaxText = 16 * 1024;
inline constexpr std::size_t kSeedBytes = 64;

// launcher -> door, dialer, opener
enum class Order : std::uint32_t {
  open = 1,  // a workspace gets lists (egress/list/lists.h). door: with these (memory file), TCP listeners for IPv4 and IPv6, the
             // names socket (UDP, 127.0.0.53:53 and every other server's address), and, where sessions can be told apart, the
             // socket for that (common/capture/owner.h), in this order; or, where connectors connect for sessions, the listener
             // that these connect to; dialer and opener: with the lists alone. Sent again: newer lists, then no sockets
  close = 2,  // its connections end; nothing more is accepted of it
  peer = 3,   // with one end of a SOCK_SEQPACKET pair, whose other end goes to the other process. Workspace and generation are 0.
              // Sent again when that process was started anew: what ran over the old pair has failed
  member = 4,  // to the door, the answer to Said::whose; text: a Cgroup, then "session domain", "session " of one without a way
               // out, or nothing: no session's
  connector = 5,  // to the door, with its end of the line to a session's connector (connector.h); text: "session domain"
  opener = 6,     // to door and dialer: as peer, for the pair with the opener
  upstream = 7,   // to the dialer, before the lists that it goes with; text: the domain, a line end, and upstream_bytes() of
                  // egress/list/upstream.h; nothing there: none
  inside = 8,     // to the door, the answer to Said::inside, with the connected socket where there is no error; text: an Inside
  mappings = 9,   // to the door; text: mapping_bytes() of egress/list/mapping.h
  probe = 10,     // to the dialer: connects as for a session, and says what came of it; text: a Probe, the host and the domain
  secret = 11,    // to the opener, after the lists: a binding's secret (memory file; empty: there is none); text: "domain name"
  seed = 12,      // to the opener, before all else: random bytes (memory file) from which the key of its authority follows, so
                  // that one that is started anew has the same
  ports = 13,     // to the door, after its sockets: one listener more or some, each at a port of every address
  grants = 14,    // to door and dialer: all that are in force; text: grant_bytes() of egress/list/grant.h
  dialer = 15,    // to the opener: as peer, for the pair with the dialer
};
struct Cgroup {
  std::uint64_t id;
};
inline constexpr std::size_t kMaxMember = 160;  // bytes of text
struct Inside {
  std::uint32_t id;     // of the door's
  std::uint16_t port;   // of the workspace's own loopback
  std::uint16_t error;  // errno, in an answer; else 0
};
struct Probe {
  std::uint32_t id;  // of the launcher's
  std::uint16_t port;
  std::uint16_t host_bytes;
};
struct OrderHead {
  Order order;
  std::uint32_t generation;  // of the list: stands in records
  std::uint64_t workspace;   // a number that is never used again
};

// door, dialer, opener -> launcher
enum class Said : std::uint32_t {
  ready = 1,         // sealed; the first message
  record = 2,        // text: a JSON object, one egress event of the workspace; `refusal` stands in that of a refusal
  dropped = 3,       // text: a JSON object, events that were only counted
  closed = 4,        // the workspace's connections have ended, nothing follows about it
  figures = 5,       // text: a JSON object of counters, at most one a second, of the workspace
  whose = 6,         // of the door; text: a Cgroup. Whose cgroup is this?
  authority = 7,     // of the opener; text: the hash by which OpenSSL finds its authority in a directory, a line's end, and that
                     // one's certificate, in PEM; no workspace's. Before any secret is used
  unauthorized = 8,  // of the dialer; text: a domain. Its proxy does not take the credential. Order::upstream follows, with a
                     // newer one where there is one
  inside = 9,        // of the door; text: an Inside. A mapping leads there
  probed = 10,       // of the dialer; text: a DialAnswer, the answer to a Probe
  used = 11,         // of the door; text: a Used. A grant for one connection was used
};
struct Used {
  std::uint32_t grant;
};
struct SaidHead {
  Said said;
  std::uint32_t size;  // bytes of text
  std::uint64_t workspace;
};

// door -> dialer
struct DialRequest {
  std::uint64_t workspace;
  std::uint32_t id;          // of the door's
  std::uint16_t port;        // host order
  std::uint16_t host_bytes;  // the host's canonical text follows, at most 255 bytes, then the domain whose list permits it
};
// dialer -> door; with the connected socket where `error` is 0.
struct DialAnswer {
  std::uint32_t id;
  std::int32_t error;        // errno of the connection, or 0
  std::int32_t rule;         // which rule decided, -1: none did
  std::uint32_t refusal;     // a Refusal, 0: none
  std::uint8_t address[16];  // where it leads, or where it failed
  std::uint8_t v6;
  std::uint8_t upstream;  // 1: through an upstream proxy, whose address this is then
  std::uint16_t status;   // what that one answered, if that was a refusal (Refusal::upstream), as a status of HTTP; else 0
  std::uint8_t reserved[4];
};

// door -> opener: a connection to a host whose TLS is opened, with the session's socket and the one that the dialer has
// connected. Nothing is answered: from then on it is the opener's. So what reads sessions' bytes first never has a secret, and
// what has secrets gets no connection but to a server whose certificate it verifies itself.
struct OpenRequest {
  std::uint64_t workspace;
  std::uint16_t port;                                     // host order
  std::uint16_t host_bytes, domain_bytes, session_bytes;  // texts that follow; the rest was read of the session already
};

// dialer -> opener: a connection to an upstream proxy that speaks TLS, with its socket and one end of a stream pair, in which the
// proxy's plain bytes are to go both ways. Nothing is answered; the end of the pair is that of the connection.
struct WrapRequest {
  std::uint64_t workspace;
  std::uint16_t port;                      // host order
  std::uint16_t host_bytes, domain_bytes;  // texts that follow: whom the certificate is to name, and for the record
  std::uint16_t reserved;
};

// Why a connection is refused: the words of records, answers and metrics.
enum class Refusal : std::uint32_t {
  none,
  rule,
  not_listed,
  port,
  address,
  rebinding,
  unresolved,
  no_such_name,
  sni,
  ech_or_fronting,
  not_tls,
  framing,
  method,
  host_differs,
  limit,
  rate,
  timeout,
  dialer,
  canary,
  unregistered,
  upstream,
  placeholder_elsewhere,
  placeholder_unbound,
  certificate,
  opener,
  unidentified,
  path,
};
constexpr std::string_view words(Refusal) {
  return "none rule not_listed port address rebinding unresolved no_such_name sni ech_or_fronting not_tls framing method "
         "host_differs limit rate "
         "timeout dialer canary unregistered upstream placeholder_elsewhere placeholder_unbound certificate opener unidentified "
         "path";
}
// No rule says anything of it: whoever may be asked may allow it (egress/list/grant.h).
constexpr bool is_undecided(Refusal refusal) {
  return refusal == Refusal::not_listed || refusal == Refusal::port || refusal == Refusal::unresolved;
}
// What nobody does by mistake: such a record is an alarm, and counted as one, too.
constexpr bool is_alarm(Refusal refusal) {
  return refusal == Refusal::canary || refusal == Refusal::unregistered || refusal == Refusal::placeholder_elsewhere;
}

}  // namespace caisson::egress
