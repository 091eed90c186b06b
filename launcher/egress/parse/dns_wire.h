// Messages of DNS (RFC 1035 4.1): head, names, numbers. A name is kept as it is on the wire, in lower case and without pointers:
// labels with their sizes in front, so that a label with a dot in it is no two labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/egress/list/host.h"

namespace caisson::egress {

inline constexpr std::uint16_t kTypeA = 1, kTypeCname = 5, kTypePtr = 12, kTypeAaaa = 28, kTypeOpt = 41, kClassIn = 1;
inline constexpr std::size_t kDnsHead = 12;
inline constexpr std::uint16_t kEdnsSize = 1232;  // what we take and send by UDP: no fragments on any path (DNS flag day 2020)
enum class DnsCode : std::uint8_t {
  no_error = 0,
  malformed = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
  bad_version = 16
};

struct DnsHead {
  std::uint16_t id = 0, flags = 0, questions = 0, answers = 0, authorities = 0, additional = 0;
  [[nodiscard]] bool answer() const { return (flags & 0x8000) != 0; }
  [[nodiscard]] unsigned opcode() const { return flags >> 11 & 15; }
  [[nodiscard]] bool truncated() const { return (flags & 0x0200) != 0; }
  [[nodiscard]] bool recursion_desired() const { return (flags & 0x0100) != 0; }
  [[nodiscard]] DnsCode code() const { return static_cast<DnsCode>(flags & 15); }
};

// Reads a message from its start on. After a failure everything is zero and empty, and good() false.
class DnsReader {
 public:
  explicit DnsReader(std::string_view message) : message_(message) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return at_ == message_.size(); }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] DnsHead head();
  [[nodiscard]] std::uint32_t number(std::size_t width);
  [[nodiscard]] std::string_view take(std::size_t size);
  // Each pointer leads before the place where it was followed to, so that no chain of them is endless. pointers: false where none
  // may be.
  [[nodiscard]] std::string name(bool pointers);
  // A name inside of what take() has returned last, which must be nothing but the name.
  [[nodiscard]] std::string name_in(std::string_view part);

 private:
  [[nodiscard]] std::string name_at(std::size_t& at, bool pointers);
  std::string_view message_;
  std::size_t at_ = 0;
  bool good_ = true;
};

[[nodiscard]] std::string wire_name(const Name& name);
// nullopt: the name is no host's.
[[nodiscard]] std::optional<Host> wire_host(std::string_view wire);
void put_number(std::string& out, std::uint32_t value, std::size_t width);

}  // namespace caisson::egress
