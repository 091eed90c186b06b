// The names socket's side of DNS: questions of sessions, and the answers to them, which we make up ourselves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/egress/list/host.h"
#include "launcher/egress/parse/dns_wire.h"
#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

struct DnsQuestion {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  std::string question;      // as it came, with the case of its letters, for the answer; empty: none could be read
  std::string wire;          // the name, in lower case
  std::optional<Host> host;  // the name as a host. An Address: someone asks for the name "1.2.3.4"
  std::uint16_t type = 0;
  bool edns = false;
  std::size_t most = 512;  // bytes of an answer by UDP
  // Of a refused message: what it is answered with. nullopt: not at all, because it is an answer itself or has no head.
  std::optional<DnsCode> code;
};

// A whole message, as UDP delivers it. Refused (`framing`): everything but one question of class IN in a query (opcode 0).
Outcome read_dns_question(std::string_view message, DnsQuestion& question);
// By TCP: two bytes of size in front (RFC 1035 4.2.2). done: the size of both; the message is bytes.substr(2, size - 2).
Outcome find_dns_message(std::string_view bytes);

struct DnsRecord {
  std::uint16_t type = kTypeA;
  std::uint32_t ttl = 0;
  std::string data;  // of A and AAAA the address, of PTR a name (wire_name)
};
[[nodiscard]] DnsRecord address_record(const Address& address, std::uint32_t ttl);
// The answer, with these records for the name that was asked. No record and no_error: the name is there, the type is not. What
// does not fit into `most` bytes is left out, and the answer says that it is truncated. Never says that something was verified
// (AD).
[[nodiscard]] std::string dns_reply(const DnsQuestion& question, DnsCode code, std::span<const DnsRecord> records,
                                    std::size_t most);

}  // namespace caisson::egress
