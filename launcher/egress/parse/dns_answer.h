// The dialer's side of DNS: what it asks a resolver, and what it takes of the answer. The answer is hostile bytes: whoever owns
// the name, or somebody on the way, wrote it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/host.h"
#include "launcher/egress/parse/dns_wire.h"
#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxAnswerRecords = 256, kMaxAddresses = 64, kMaxAliases = 16;

[[nodiscard]] std::string dns_query(std::uint16_t id, const Name& name, std::uint16_t type);

struct DnsAnswer {
  DnsCode code = DnsCode::no_error;
  bool truncated = false;          // to be asked again by TCP; then nothing else is read
  std::vector<Address> addresses;  // of the name, or of the end of its chain of aliases. No others that the message has
  std::uint32_t ttl = 0;           // the least one of what was used
};
// type: A or AAAA. Refused: not the answer to that question, malformed, or larger than the bounds above. Authority and additional
// records are not looked at.
Outcome read_dns_answer(std::string_view message, std::uint16_t id, const Name& name, std::uint16_t type, DnsAnswer& answer);

}  // namespace caisson::egress
