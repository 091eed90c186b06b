// The door's line to the opener, which takes over connections to hosts whose TLS is opened. It is not there where no policy has
// one.
#pragma once

#include <memory>

#include "launcher/egress/loop/link.h"
#include "launcher/egress/parse/http_head.h"

namespace caisson::egress {

class Connection;

class OpenLine {
 public:
  explicit OpenLine(Poll& poll) : poll_(poll) {}
  void set_peer(Fd fd);
  // Takes both of its sockets. False: nobody is there, or the session has sent too much; nothing was taken then.
  [[nodiscard]] bool hand_over(Connection& connection, const HostPort& place);

 private:
  Poll& poll_;
  std::unique_ptr<Link> opener_;
};

}  // namespace caisson::egress
