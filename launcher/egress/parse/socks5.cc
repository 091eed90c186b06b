#include "launcher/egress/parse/socks5.h"

#include <algorithm>

namespace caisson::egress {
namespace {

constexpr char kNoAuthentication = 0, kConnect = 1, kIpv4 = 1, kName = 3, kIpv6 = 4;

Outcome malformed(std::string_view why) { return refuse(Refusal::framing, why); }
std::size_t byte(std::string_view bytes, std::size_t at) { return static_cast<unsigned char>(bytes[at]); }

Address read_address(std::string_view bytes) {
  Address address{.v6 = bytes.size() == 16};
  std::ranges::copy(bytes, address.bytes.begin());
  return address;
}

// A mapped address becomes the IPv4 one, as read_host does with its text.
Result<Host> read_place(char kind, std::string_view place) {
  return read_host(kind == kName ? std::string(place) : read_address(place).text());
}

}  // namespace

Outcome read_socks_greeting(std::string_view bytes) {
  if (!bytes.empty() && bytes[0] != kSocksVersion) return malformed("it is not SOCKS version 5");
  if (bytes.size() < 2) return need_more();
  const std::size_t size = 2 + byte(bytes, 1);
  if (size == 2) return malformed("it offers no method");
  if (bytes.size() < size) return need_more();
  if (bytes.substr(2, size - 2).find(kNoAuthentication) == std::string_view::npos)
    return refuse(Refusal::method, "it does not offer to go without authentication");
  return done(size);
}

std::string_view socks_greeting_answer(bool accepted) {
  return accepted ? std::string_view("\x05\x00", 2) : std::string_view("\x05\xff", 2);
}

Outcome read_socks_request(std::string_view bytes, SocksRequest& request) {
  if (!bytes.empty() && bytes[0] != kSocksVersion) return malformed("it is not SOCKS version 5");
  if (bytes.size() >= 2 && bytes[1] != kConnect) return refuse(Refusal::method, "only CONNECT is spoken here");
  if (bytes.size() >= 3 && bytes[2] != 0) return malformed("its reserved byte is not zero");
  if (bytes.size() < 4) return need_more();
  const char kind = bytes[3];
  if (kind != kIpv4 && kind != kName && kind != kIpv6) return malformed("its kind of address is unknown");
  if (bytes.size() < 5) return need_more();
  const std::size_t start = kind == kName ? 5 : 4;
  const std::size_t size = kind == kName ? byte(bytes, 4) : kind == kIpv4 ? 4 : 16;
  if (bytes.size() < start + size + 2) return need_more();
  const auto host = read_place(kind, bytes.substr(start, size));
  if (!host) return malformed("its host is none");
  request.host = *host;
  request.port = static_cast<std::uint16_t>(byte(bytes, start + size) << 8 | byte(bytes, start + size + 1));
  if (request.port == 0) return malformed("its port is 0");
  return done(start + size + 2);
}

std::string socks_answer(SocksReply reply) {
  std::string answer("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 10);
  answer[1] = static_cast<char>(reply);
  return answer;
}

}  // namespace caisson::egress
