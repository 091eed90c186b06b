#include "launcher/egress/parse/client_hello.h"

#include <algorithm>

#include "launcher/egress/parse/bytes.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kRecordHead = 5, kMessageHead = 4, kMaxRecord = 1 << 14;
constexpr char kClientHello = 1;
enum Extension : std::uint32_t { kServerName = 0, kAlpn = 16, kEncryptedSni = 0xffce, kEncryptedHello = 0xfe0d };

Outcome not_tls(std::string_view why) { return refuse(Refusal::not_tls, why); }

// handshake, a version that some server takes (their reading of it goes from exact to "below 16.0"), 1 to 2^14 bytes (RFC
// 8446 5.1: no empty fragments of handshake messages). As much of it as has come.
bool may_be_record(std::string_view head) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
  if (!head.empty() && head[0] != kTlsHandshake) return false;
  if (head.size() > 1 && at(1) >= 16) return false;
  if (head.size() > 3 && at(3) * 256U > kMaxRecord) return false;
  const unsigned size = head.size() > 4 ? at(3) * 256U + at(4) : 1;
  return size >= 1 && size <= kMaxRecord;
}

std::size_t message_size(std::string_view message) { return kMessageHead + Bytes(message.substr(1)).number(3); }

Outcome read_server_name(std::string_view data, ClientHello& hello) {
  Bytes in(data);
  Bytes list(in.part(2));
  const std::uint32_t kind = list.number(1);
  const std::string_view name = list.part(2);
  if (!in.whole() || !list.whole() || kind != 0) return refuse(Refusal::sni, "its server name is malformed");
  const auto host = read_host(name);
  if (!host || !std::holds_alternative<Name>(*host)) return refuse(Refusal::sni, "its server name is no name");
  hello.server = std::get<Name>(*host);
  return done(0);
}

Outcome read_protocols(std::string_view data, ClientHello& hello) {
  Bytes in(data);
  Bytes list(in.part(2));
  while (list.good() && !list.at_end()) {
    const std::string_view protocol = list.part(1);
    if (protocol.empty()) return not_tls("its list of protocols is malformed");
    hello.protocols.emplace_back(protocol);
  }
  if (!in.whole() || !list.good() || hello.protocols.empty()) return not_tls("its list of protocols is malformed");
  return done(0);
}

// Each extension at most once (RFC 8446 4.2): of two server names, two parsers could take different ones.
Outcome read_extensions(std::string_view data, ClientHello& hello) {
  Bytes in(data);
  std::vector<std::uint32_t> kinds;
  while (in.good() && !in.at_end()) {
    const std::uint32_t kind = in.number(2);
    const std::string_view body = in.part(2);
    if (!in.good()) break;
    kinds.push_back(kind);
    if (kind == kServerName) {
      if (const Outcome read = read_server_name(body, hello); read.refused()) return read;
    } else if (kind == kAlpn) {
      if (const Outcome read = read_protocols(body, hello); read.refused()) return read;
    } else if (kind == kEncryptedHello || kind == kEncryptedSni) {
      hello.ech = true;
    }
  }
  if (!in.good()) return not_tls("its extensions are malformed");
  std::ranges::sort(kinds);
  if (std::ranges::adjacent_find(kinds) != kinds.end()) return not_tls("it has an extension twice");
  return done(0);
}

Outcome read_message(std::string_view message, ClientHello& hello) {
  hello = {};
  Bytes in(message.substr(kMessageHead));
  const std::uint32_t version = in.number(2);
  (void)in.take(32);  // random
  const std::string_view session = in.part(1), ciphers = in.part(2), compressions = in.part(1);
  const bool shaped = in.good() && version >= 0x0300 && version <= 0x0304 && session.size() <= 32 && ciphers.size() >= 2 &&
                      ciphers.size() % 2 == 0 && !compressions.empty();
  if (!shaped) return not_tls("its ClientHello is malformed");
  if (in.at_end()) return done(0);  // before TLS 1.3 a ClientHello may end here
  const std::string_view extensions = in.part(2);
  return in.whole() ? read_extensions(extensions, hello) : not_tls("its ClientHello is malformed");
}

}  // namespace

// One record's head, or what has come of its body.
Outcome HelloReader::read_record(std::string_view bytes) {
  if (record_left_ == 0) {
    const std::string_view head = bytes.substr(at_, kRecordHead);
    if (!may_be_record(head)) return not_tls("it does not begin as TLS");
    if (head.size() < kRecordHead) return need_more();
    record_left_ = Bytes(head.substr(3)).number(2);
    at_ += kRecordHead;
  }
  const std::string_view part = bytes.substr(at_, record_left_);
  message_ += part;
  at_ += part.size();
  record_left_ -= part.size();
  if (!message_.empty() && message_[0] != kClientHello) return not_tls("its first message is no ClientHello");
  if (message_.size() < kMessageHead) return need_more();
  const std::size_t size = message_size(message_);
  if (size > kMaxHead) return refuse(Refusal::limit, "its ClientHello is too large");
  if (message_.size() > size || (message_.size() == size && record_left_ > 0))
    return not_tls("something follows its ClientHello in a record");
  return message_.size() == size ? done(at_) : need_more();
}

Outcome HelloReader::read(std::string_view bytes) {
  const std::string_view part = bytes.substr(0, kMaxHead);
  for (std::size_t before = at_ + 1; before != at_;) {
    before = at_;
    const Outcome record = read_record(part);
    if (record.refused()) return record;
    if (!record.done()) continue;
    const Outcome read = read_message(message_, hello_);
    return read.refused() ? read : record;
  }
  return part.size() == kMaxHead ? refuse(Refusal::limit, "its ClientHello is too large") : need_more();
}

}  // namespace caisson::egress
