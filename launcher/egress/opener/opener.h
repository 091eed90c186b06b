// The opener: what ends the TLS of sessions to hosts that a secret is bound to or a rule inspects, and begins it anew to the
// server, whose certificate it verifies. It alone has secrets and the keys of the workspaces' authorities. Its connections come
// from the door, which it does not trust: it asks the list again, and sends a secret to nobody but the host that the secret is
// bound to. It speaks TLS to upstream proxies for the dialer, too, and sees what goes through these.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/telling/shares.h"
#include "launcher/egress/loop/launcher_line.h"
#include "launcher/egress/loop/link.h"
#include "launcher/egress/loop/poll.h"
#include "launcher/egress/opener/authority.h"
#include "launcher/egress/opener/place.h"
#include "launcher/egress/opener/trust.h"

namespace caisson::egress {

class Wrapped;

class Opener {
 public:
  // most_connections: of all workspaces.
  Opener(Poll& poll, Fd launcher, Trust trust, std::size_t most_connections);
  ~Opener();
  // Whether the launcher is gone, and with it the reason to be.
  [[nodiscard]] bool done() const { return done_; }

 private:
  bool ordered(const OrderHead& order, std::string_view text, std::vector<Fd> fds);
  bool open(const OrderHead& order, const Fd& file);
  bool certify();
  bool set_secret(const OrderHead& order, std::string_view text, const Fd& file);
  bool set_seed(const Fd& file);
  bool set_door(Fd fd);
  bool handed(std::string_view message, std::vector<Fd> fds);
  bool set_dialer(Fd fd);
  bool wrap(std::string_view message, std::vector<Fd> fds);

  Poll& poll_;
  const Trust trust_;
  const std::size_t most_connections_;
  Shares wrapping_;
  LauncherLine launcher_;
  std::string seed_;
  std::optional<Authority> authority_;
  std::map<std::uint64_t, std::unique_ptr<Place>> places_;
  std::list<std::unique_ptr<Wrapped>> wrapped_;
  std::unique_ptr<Link> door_, dialer_;
  bool done_ = false;
};

}  // namespace caisson::egress
