// The door: what all workspaces' sessions meet when they connect or ask for a name. It reads hostile bytes and can make no
// socket: it accepts from listeners that were handed to it, and gets its connections to the outside from the dialer, which asks
// the list again.
#pragma once

#include <map>
#include <memory>

#include "launcher/egress/door/dial_line.h"
#include "launcher/egress/door/inside_line.h"
#include "launcher/egress/door/open_line.h"
#include "launcher/egress/door/pipes.h"
#include "launcher/egress/door/workspace.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

class Door {
 public:
  // most_connections: of all workspaces; each has up to six descriptors. As many more are kept for later requests.
  Door(Poll& poll, Fd launcher, std::size_t most_connections);
  ~Door();
  // Whether the launcher is gone, and with it the reason to be.
  [[nodiscard]] bool done() const { return done_; }

 private:
  bool ordered(const OrderHead& order, std::string_view text, std::vector<Fd> fds);
  bool set_member(const OrderHead& order, std::string_view text);
  bool open(const OrderHead& order, std::vector<Fd> fds);
  bool add_ports(const OrderHead& order, std::vector<Fd> fds);
  bool add_connector(const OrderHead& order, std::string_view text, std::vector<Fd> fds);
  bool close(const OrderHead& order);
  bool set_grants(const OrderHead& order, std::string_view text);
  bool set_mappings(const OrderHead& order, std::string_view text);
  void tell();

  Poll& poll_;
  LauncherLine launcher_;
  DialLine dialer_;
  InsideLine inside_;
  OpenLine opener_;
  Pipes pipes_;
  House house_;
  std::map<std::uint64_t, std::unique_ptr<Workspace>> workspaces_;
  Poll::Timer telling_;
  bool done_ = false;
};

}  // namespace caisson::egress
