#include "launcher/egress/parse/dns_question.h"

#include <algorithm>

namespace caisson::egress {
namespace {

Outcome answered(DnsQuestion& question, DnsCode code, std::string_view why) {
  question.code = code;
  return refuse(Refusal::framing, why);
}

// The OPT record (RFC 6891 6.1.2), which is the only thing that may follow a question. Its options are not for us.
DnsCode read_opt(DnsReader& in, DnsQuestion& question) {
  const std::string root = in.name(false);
  const std::uint32_t type = in.number(2), size = in.number(2);
  (void)in.number(1);  // the upper bits of a code
  const std::uint32_t version = in.number(1);
  (void)in.number(2);  // flags: DO asks for signatures, of which there are none
  (void)in.take(in.number(2));
  if (!in.good() || type != kTypeOpt || root.size() != 1) return DnsCode::malformed;
  question.edns = true;
  question.most = std::clamp<std::size_t>(size, 512, kEdnsSize);
  return version == 0 ? DnsCode::no_error : DnsCode::bad_version;
}

}  // namespace

Outcome read_dns_question(std::string_view message, DnsQuestion& question) {
  question = {};
  DnsReader in(message);
  const DnsHead head = in.head();
  if (!in.good() || head.answer()) return refuse(Refusal::framing, "it is no query");
  question.id = head.id;
  question.recursion_desired = head.recursion_desired();
  if (head.opcode() != 0) return answered(question, DnsCode::refused, "its operation is no query");
  if (head.questions != 1 || head.answers != 0 || head.authorities != 0 || head.additional > 1)
    return answered(question, DnsCode::malformed, "it is not one question");
  question.wire = in.name(false);
  question.type = static_cast<std::uint16_t>(in.number(2));
  const std::uint32_t type_class = in.number(2);
  if (!in.good()) return answered(question, DnsCode::malformed, "its question is malformed");
  question.question = message.substr(kDnsHead, in.at() - kDnsHead);
  question.host = wire_host(question.wire);
  if (head.additional == 1)
    if (const DnsCode code = read_opt(in, question); code != DnsCode::no_error)
      return answered(question, code, "its EDNS record is malformed");
  if (!in.at_end()) return answered(question, DnsCode::malformed, "something follows its question");
  if (type_class != kClassIn) return answered(question, DnsCode::refused, "its class is not IN");
  return done(message.size());
}

Outcome find_dns_message(std::string_view bytes) {
  if (bytes.size() < 2) return need_more();
  const std::size_t size = static_cast<unsigned char>(bytes[0]) * 256U + static_cast<unsigned char>(bytes[1]);
  if (size < kDnsHead) return refuse(Refusal::framing, "a message is shorter than its head");
  return bytes.size() < 2 + size ? need_more() : done(2 + size);
}

DnsRecord address_record(const Address& address, std::uint32_t ttl) {
  const std::size_t size = address.v6 ? 16 : 4;
  return {address.v6 ? kTypeAaaa : kTypeA, ttl,
          std::string(address.bytes.begin(), address.bytes.begin() + static_cast<std::ptrdiff_t>(size))};
}

std::string dns_reply(const DnsQuestion& question, DnsCode code, std::span<const DnsRecord> records, std::size_t most) {
  constexpr std::uint32_t kAnswer = 0x8000, kTruncated = 0x0200, kDesired = 0x0100, kRecursive = 0x0080;
  std::string body, opt;
  for (const DnsRecord& record : records) {
    body += "\xc0\x0c";  // the name of the question
    put_number(body, record.type, 2);
    put_number(body, kClassIn, 2);
    put_number(body, record.ttl, 4);
    put_number(body, static_cast<std::uint32_t>(record.data.size()), 2);
    body += record.data;
  }
  if (question.edns) {
    put_number(opt, 0, 1);
    put_number(opt, kTypeOpt, 2);
    put_number(opt, kEdnsSize, 2);
    put_number(opt, static_cast<std::uint32_t>(code) >> 4, 1);
    put_number(opt, 0, 5);  // version, flags, no options
  }
  const bool fits = !question.question.empty() && kDnsHead + question.question.size() + body.size() + opt.size() <= most;
  const bool truncated = !fits && !records.empty();
  std::string out;
  put_number(out, question.id, 2);
  put_number(out,
             kAnswer | (truncated ? kTruncated : 0) | (question.recursion_desired ? kDesired : 0) | kRecursive |
                 (static_cast<std::uint32_t>(code) & 15),
             2);
  put_number(out, question.question.empty() ? 0 : 1, 2);
  put_number(out, fits ? static_cast<std::uint32_t>(records.size()) : 0, 2);
  put_number(out, 0, 2);
  put_number(out, question.edns ? 1 : 0, 2);
  return out + question.question + (fits ? body : "") + opt;
}

}  // namespace caisson::egress
