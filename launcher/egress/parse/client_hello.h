// What a TLS client says first (RFC 8446 4.1.2, RFC 5246 7.4.1.2), without taking part: which server it names. Over any number of
// records and segments. Nothing here decides that a connection is TLS to that server; the server's certificate does, at the
// client.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/host.h"
#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

struct ClientHello {
  std::optional<Name> server;          // of the extension server_name; with ECH the outer one
  std::vector<std::string> protocols;  // of ALPN
  bool ech = false;  // an extension encrypted_client_hello is there. Browsers always send one: it proves nothing
};

// The byte that TLS begins with, and no HTTP or SOCKS.
inline constexpr char kTlsHandshake = 22;

class HelloReader {
 public:
  // `bytes`: all that has come of the connection, from its first byte on. Refused: `not_tls` at the first byte that cannot be of
  // a ClientHello, or where the whole is none; `sni` if its server name is no name; `limit` above kMaxHead.
  Outcome read(std::string_view bytes);
  [[nodiscard]] const ClientHello& hello() const { return hello_; }

 private:
  Outcome read_record(std::string_view bytes);

  std::size_t at_ = 0;           // of the bytes, a record's first that is not read
  std::size_t record_left_ = 0;  // bytes of the record that are to come
  std::string message_;          // the handshake message, out of its records
  ClientHello hello_;
};

}  // namespace caisson::egress
