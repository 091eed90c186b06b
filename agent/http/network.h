// Networks: IP addresses and CIDR ranges that the operator lists, such as his proxies. An IPv4 address and the same address
// mapped into IPv6 (::ffff:192.0.2.1) are one. Pure functions, no I/O.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::http {

using AddressBytes = std::array<unsigned char, 16>;  // IPv4 in its mapped form

// nullopt: not an IP address. Brackets, ports and zones are not accepted.
[[nodiscard]] std::optional<AddressBytes> address_bytes(std::string_view text);
// The usual spelling: IPv4 with dots, IPv6 compressed.
[[nodiscard]] std::string address_text(const AddressBytes& bytes);

class Networks {
 public:
  // "192.0.2.1, 10.0.0.0/8, 2001:db8::/32"; the empty text has none. Code::invalid_argument: malformed, more than 256 of them, or
  // a range whose address has bits behind its prefix, which is a typing error in one of the two.
  [[nodiscard]] static Result<Networks> parse(std::string_view list);
  [[nodiscard]] bool contains(std::string_view address) const;
  [[nodiscard]] bool contains(const AddressBytes& address) const;
  // Whether a range is of every address, of one family at least.
  [[nodiscard]] bool has_everything() const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    AddressBytes address;
    unsigned bits;
  };
  static Result<Range> read_range(std::string_view text);
  std::vector<Range> ranges_;
};

}  // namespace caisson::http
