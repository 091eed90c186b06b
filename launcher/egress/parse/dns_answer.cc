#include "launcher/egress/parse/dns_answer.h"

#include <algorithm>
#include <map>

namespace caisson::egress {
namespace {

struct Alias {
  std::string to;
  std::uint32_t ttl = 0;
};
struct Located {
  std::string owner;
  Address address;
  std::uint32_t ttl = 0;
};
struct Records {
  std::map<std::string, Alias> aliases;
  std::vector<Located> addresses;
};

Outcome malformed(std::string_view why) { return refuse(Refusal::framing, why); }

// The record is taken if it is of use; else it is passed over.
Outcome read_record(DnsReader& in, std::uint16_t type, Records& records) {
  std::string owner = in.name(true);
  const std::uint32_t kind = in.number(2), kind_class = in.number(2), ttl = in.number(4);
  const std::string_view data = in.take(in.number(2));
  if (!in.good()) return malformed("a record of the answer is malformed");
  if (kind_class != kClassIn) return done(0);
  if (kind == kTypeCname) {
    std::string to = in.name_in(data);
    if (!in.good()) return malformed("an alias of the answer is malformed");
    records.aliases.try_emplace(std::move(owner), std::move(to), ttl);
  } else if (kind == type) {
    Address address{.v6 = type == kTypeAaaa};
    if (data.size() != (address.v6 ? 16U : 4U)) return malformed("an address of the answer has a wrong size");
    if (records.addresses.size() == kMaxAddresses) return done(0);
    std::ranges::copy(data, address.bytes.begin());
    records.addresses.push_back({std::move(owner), address, ttl});
  }
  return done(0);
}

void follow(const Records& records, std::string name, DnsAnswer& answer) {
  std::uint32_t ttl = 0x7fffffff;
  for (std::size_t i = 0; i < kMaxAliases; ++i) {
    const auto alias = records.aliases.find(name);
    if (alias == records.aliases.end()) break;
    ttl = std::min(ttl, alias->second.ttl);
    name = alias->second.to;
  }
  for (const Located& one : records.addresses) {
    if (one.owner != name) continue;
    ttl = std::min(ttl, one.ttl);
    answer.addresses.push_back(one.address);
  }
  answer.ttl = answer.addresses.empty() ? 0 : ttl;
}

}  // namespace

std::string dns_query(std::uint16_t id, const Name& name, std::uint16_t type) {
  std::string out;
  put_number(out, id, 2);
  put_number(out, 0x0100, 2);  // recursion desired
  for (const std::uint32_t count : {1U, 0U, 0U, 1U}) put_number(out, count, 2);
  out += wire_name(name);
  put_number(out, type, 2);
  put_number(out, kClassIn, 2);
  put_number(out, 0, 1);
  put_number(out, kTypeOpt, 2);
  put_number(out, kEdnsSize, 2);
  put_number(out, 0, 6);  // code, version, flags, no options
  return out;
}

Outcome read_dns_answer(std::string_view message, std::uint16_t id, const Name& name, std::uint16_t type, DnsAnswer& answer) {
  answer = {};
  DnsReader in(message);
  const DnsHead head = in.head();
  std::string wire = wire_name(name);
  if (!in.good() || !head.answer() || head.opcode() != 0 || head.id != id || head.questions != 1)
    return malformed("it is not the answer");
  const std::string asked = in.name(false);
  const std::uint32_t asked_type = in.number(2), asked_class = in.number(2);
  if (!in.good() || asked != wire || asked_type != type || asked_class != kClassIn)
    return malformed("it answers another question");
  answer.code = head.code();
  answer.truncated = head.truncated();
  if (answer.truncated || answer.code != DnsCode::no_error) return done(message.size());
  if (head.answers > kMaxAnswerRecords) return refuse(Refusal::limit, "the answer has too many records");
  Records records;
  for (unsigned i = 0; i < head.answers; ++i)
    if (const Outcome read = read_record(in, type, records); read.refused()) return read;
  follow(records, std::move(wire), answer);
  return done(message.size());
}

}  // namespace caisson::egress
