// A host as egress compares it. Each spelling has one canonical form, so that no spelling of a denied host passes as another
// host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "launcher/common/base/result.h"

namespace caisson::egress {

// An IP address in network order. An IPv4 address that is written as an IPv6 one (::ffff:0:0/96, RFC 4291 2.5.5.2) is an IPv4
// one.
struct Address {
  std::array<std::uint8_t, 16> bytes{};  // of an IPv4 address the first four
  bool v6 = false;
  auto operator<=>(const Address&) const = default;
  [[nodiscard]] std::string text() const;  // dotted, or as RFC 5952 writes it
};

// A name in canonical form: lower-case ASCII, labels of letters, digits, '-' and '_', 1 to 63 bytes each, 253 in all (RFC
// 1035 2.3.4), without a trailing dot, with at least one letter in its last label.
struct Name {
  std::string text;
  auto operator<=>(const Name&) const = default;
};

using Host = std::variant<Name, Address>;
[[nodiscard]] std::string host_text(const Host& host);

// Reads a host as clients write it: case, one trailing dot, brackets around an IPv6 address, the spellings that inet_aton(3)
// takes (octal, hexadecimal, one to four parts), an xn-- label. Refused (invalid_argument): empty, NUL and control bytes, bytes
// above 0x7f, spaces, a zone
// (%eth0), labels that no name may have, numbers that no inet_aton takes, more than 255 bytes.
[[nodiscard]] Result<Host> read_host(std::string_view text);

// Where an address leads, by the registries of special addresses (IANA, RFC 6890). Forms that carry an IPv4 address (NAT64
// 64:ff9b::/96 and 64:ff9b:1::/48, 6to4 2002::/16, Teredo 2001::/32, ISATAP, IPv4-compatible ::/96) are of the class of the
// address that they carry, unless that one is global: then they are `translated`. 64:ff9b:1::/48 carries one at any of the places
// of RFC 6052 2.2: the strictest class counts.
enum class AddressClass {
  global,
  private_,    // RFC 1918, fc00::/7
  shared,      // 100.64.0.0/10 (RFC 6598)
  loopback,    // 127.0.0.0/8, ::1
  link_local,  // 169.254.0.0/16, fe80::/10
  metadata,    // services of clouds that hand out credentials: 169.254.169.254, 169.254.170.2, 169.254.170.23, 168.63.129.16,
               // 100.100.100.200, 192.0.0.192, fd00:ec2::254, fd00:ec2::23, fd20:ce::254
  multicast,   // and broadcast
  reserved,    // 0.0.0.0/8, 192.0.0.0/24, documentation, benchmarking (198.18.0.0/15), 240.0.0.0/4, and what is not assigned
  translated,
};
constexpr std::string_view words(AddressClass) {
  return "global private shared loopback link_local metadata multicast reserved translated";
}
[[nodiscard]] AddressClass class_of(const Address& address);

}  // namespace caisson::egress
