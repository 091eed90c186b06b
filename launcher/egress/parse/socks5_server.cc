#include "launcher/egress/parse/socks5_server.h"

namespace caisson::egress {
namespace {

constexpr std::uint8_t kVersion = 5, kLoginVersion = 1, kIpv4 = 1, kName = 3, kIpv6 = 4;

std::uint8_t byte(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }
Outcome malformed(std::string_view why) { return refuse(Refusal::framing, why); }

}  // namespace

Outcome read_socks_method(std::string_view bytes, SocksMethod& method) {
  if (!bytes.empty() && byte(bytes, 0) != kVersion) return malformed("it is not SOCKS version 5");
  if (bytes.size() < 2) return need_more();
  method = static_cast<SocksMethod>(byte(bytes, 1));
  if (method != SocksMethod::none && method != SocksMethod::password && method != SocksMethod::refused)
    return malformed("it chooses a method that was not offered");
  return done(2);
}

Outcome read_socks_login(std::string_view bytes, bool& taken) {
  if (!bytes.empty() && byte(bytes, 0) != kLoginVersion) return malformed("its answer to the credential is none");
  if (bytes.size() < 2) return need_more();
  taken = byte(bytes, 1) == 0;
  return done(2);
}

Outcome read_socks_reply(std::string_view bytes, std::uint8_t& reply) {
  if (!bytes.empty() && byte(bytes, 0) != kVersion) return malformed("it is not SOCKS version 5");
  if (bytes.size() >= 2) reply = byte(bytes, 1);
  // Many end the connection after the reply, whatever RFC 1928 says of the rest: of a refusal nothing more is needed.
  if (bytes.size() >= 2 && reply != 0) return done(2);
  if (bytes.size() < 5) return need_more();
  const std::uint8_t kind = byte(bytes, 3);
  if (byte(bytes, 2) != 0) return malformed("its reserved byte is not zero");
  if (kind != kIpv4 && kind != kName && kind != kIpv6) return malformed("its kind of address is unknown");
  const std::size_t size = 4 + (kind == kIpv4 ? 4U : kind == kIpv6 ? 16U : 1U + byte(bytes, 4)) + 2;
  return bytes.size() < size ? need_more() : done(size);
}

}  // namespace caisson::egress
