// The door's line to the dialer. The dialer may end and be started anew; what was asked of the old one has failed then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/egress/list/host.h"
#include "launcher/egress/loop/link.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

struct Dialed {
  Fd fd;  // where `refusal` is none and `error` 0
  Refusal refusal = Refusal::none;
  int error = 0;  // errno: permitted, and not reached
  int rule = -1;
  std::optional<Address> address;
  bool upstream = false;  // the address is a proxy's, through which the connection goes
  int status = 0;         // of Refusal::upstream: its answer
};

// Waits for the answer with its number among all that wait at a line; when it goes, that answer belongs to nobody and is closed.
class PendingDial {
 public:
  using All = std::map<std::uint32_t, PendingDial*>;
  PendingDial(Poll& poll, All& all, std::uint32_t id);
  PendingDial(const PendingDial&) = delete;
  PendingDial& operator=(const PendingDial&) = delete;
  ~PendingDial() { all_.erase(id_); }
  Told told;
  Dialed dialed;

 private:
  static constexpr std::int64_t kPatienceUs = 12'000'000;  // longer than the dialer's own
  All& all_;
  const std::uint32_t id_;
};

class DialLine {
 public:
  // broken: the dialer said what it may not.
  DialLine(Poll& poll, std::function<void()> broken) : poll_(poll), broken_(std::move(broken)) {}
  void set_peer(Fd fd);
  // domain: whose list permits it.
  [[nodiscard]] Task<Dialed> dial(std::uint64_t workspace, std::string domain, Host host, std::uint16_t port);

 private:
  bool heard(std::string_view message, std::vector<Fd> fds);
  void fail_all();

  Poll& poll_;
  const std::function<void()> broken_;
  std::unique_ptr<Link> dialer_;
  PendingDial::All pending_;
  std::uint32_t last_id_ = 0;
};

}  // namespace caisson::egress
