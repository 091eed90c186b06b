// Whose certificates are believed of servers: the system's authorities, and those that an operator has put into /etc/caisson/ca.
#pragma once

#include <string>

#include "launcher/common/base/result.h"
#include "launcher/egress/opener/tls.h"

namespace caisson::egress {

class Trust {
 public:
  // Reads all of it now. An error: there is none, so no server could be verified.
  [[nodiscard]] static Result<Trust> load();
  // A connection to that host, whose certificate the handshake verifies. nullptr: OpenSSL failed.
  [[nodiscard]] std::unique_ptr<Tls> connect(Stream& stream, const std::string& host) const;

 private:
  TlsContext context_;
};

}  // namespace caisson::egress
