// The list of a domain: which hosts its sessions may reach. caisson-policies compiles it from the policy's `egress` (compile),
// PID 1 hands its bytes on without reading them, door and dialer read them (read_list) and decide by them. The reading end takes
// any bytes at all in bounded time and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/binding.h"
#include "launcher/egress/list/host.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxRules = 1024, kMaxListBytes = 256 * 1024, kMaxRulePorts = 16, kMaxRulePaths = 16,
                             kMaxRuleWhy = 1000;
// What the opener's authority can name, of opened_hosts(): kAroundName for each, and its text.
inline constexpr std::size_t kMaxOpenedBytes = 8 * 1024, kAroundName = 8;

// What is permitted of hosts that no rule names.
enum class Mode {
  allowlist,
  monitor,
  open
};  // nothing; every global address, all of it on record; the same without a record of each
constexpr std::string_view words(Mode) { return "allowlist monitor open"; }

struct Ports {
  std::uint16_t first = 0, last = 0;
  auto operator<=>(const Ports&) const = default;
};

// Who may allow what no rule names (grant.h), once a session was refused it. operator_: whoever reaches the control socket; api:
// clients of the API, too.
enum class Approver { nobody, operator_, api };
constexpr std::string_view words(Approver) { return "nobody operator api"; }

enum class Sni { required, optional };  // optional: a ClientHello without a server name passes
constexpr std::string_view words(Sni) { return "required optional"; }

// One rule. deny wins over allow, whatever their order. `why` and the rule's number stand in records and answers.
struct Rule {
  bool deny = false;
  // One of these: a name, a suffix ("*.example.org" is kept as "example.org": names below it, not the name itself), addresses.
  std::string name, suffix;
  std::optional<Address> address;
  unsigned prefix = 0;  // bits of `address`
  std::vector<Ports>
      ports;  // empty: 443 and 80 for names, none for addresses (compile refuses an address rule without ports); deny: every port
  bool private_ = false;  // the rule's name may resolve to private and shared addresses. An address rule permits what it names
  Sni sni = Sni::required;
  bool read_only = false;  // GET, HEAD and OPTIONS only, wherever requests are seen: in plain HTTP, and in TLS that is opened
  bool inspect = false;    // of a name that is allowed: the opener ends the session's TLS there, at every port but 80
  std::vector<std::string> paths;  // likewise: requests at one of these and below it only, wherever requests are seen; none: any
  bool alarm = false;              // deny: nobody has a reason to ask for it
  std::string why;
};

struct Limits {
  std::uint32_t connections = 512;            // at once
  std::uint32_t connections_per_second = 50;  // burst: four times as many
  std::uint64_t bytes_per_second = 0;         // both ways together; 0: not limited
  std::uint32_t idle_seconds = 300;
  bool operator==(const Limits&) const = default;
};

struct List {
  Mode mode = Mode::allowlist;
  Approver ask = Approver::nobody;
  std::vector<Rule> rules;
  std::vector<Binding> bindings = {};
  Limits limits;
  bool client_commands = false;  // clients may say which command prints the credential of the proxy that they set
  // Where sessions read whose certificates to believe: caisson-gate keeps there the system's authorities and that of opened
  // hosts. Empty: nowhere.
  std::string trust = {};
  std::string upstream =
      {};  // the proxy that the policy names, as upstream_bytes() of upstream.h, without a password; empty: none
};

[[nodiscard]] std::string list_bytes(const List& list);
[[nodiscard]] Result<List> read_list(std::string_view bytes);

// What the list says of a host and port, before any name is resolved. A deny rule decides, one that is an alarm first; else, of
// the rules that allow, the one that names the host most exactly (the name itself, then the longer suffix; the longer prefix),
// and of equal ones the first.
struct Verdict {
  enum class Kind { allow, deny, none };  // none: no rule, and the mode permits nothing
  Kind kind = Kind::none;
  int rule = -1;  // which one decided; -1: the mode
  bool private_ = false, read_only = false;
  Sni sni = Sni::required;
  bool inspect = false;
  bool alarm = false;       // of deny
  std::uint32_t grant = 0;  // which one permits it (grant.h); 0: none
};
[[nodiscard]] Verdict decide(const List& list, const Host& host, std::uint16_t port);
// Whether some port of that name is permitted: then it gets an address.
[[nodiscard]] Verdict decide_name(const List& list, const Name& name);
// Whether the opener ends the session's TLS there: because a secret is bound to it, or the rule that allows it says so.
[[nodiscard]] bool is_opened(const List& list, const Host& host, std::uint16_t port);
// Whether there is such a host: then the domain's sessions believe the opener's authority.
[[nodiscard]] bool opens(const List& list);
// The hosts that the authority certifies for this list: names, and "*.example.org" for the names below one.
[[nodiscard]] std::set<std::string> opened_hosts(const List& list);
// nullptr where none decided.
[[nodiscard]] const Rule* rule_of(const List& list, int rule);
// A rule's reason; "" where none decided.
[[nodiscard]] std::string_view why_of(const List& list, int rule);
// Whether the connection to this address is permitted for what `verdict` permitted: global ones; private and shared ones where
// the rule says so or names the address. Never: loopback, link_local, metadata (unless a rule names that one address), multicast,
// reserved, translated. And no address of a deny rule.
[[nodiscard]] bool address_permitted(const List& list, const Verdict& verdict, const Host& asked, const Address& address,
                                     std::uint16_t port);

}  // namespace caisson::egress
