// The dialer: connects for the door. What the door asks for is checked against the same list once more, a name is resolved once,
// every address is filtered, and the connection goes to an address that was checked. It never sees a byte of a session: a
// taken-over dialer knows no secret, and a taken-over door reaches what some workspace's list permits and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "launcher/common/base/task.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/egress/dialer/name_files.h"
#include "launcher/egress/dialer/resolver.h"
#include "launcher/egress/list/lists.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

class Dialer {
 public:
  static constexpr std::size_t kMostDials = 4096;  // at once; the door keeps to each workspace's limits
  static constexpr std::size_t kMostAddresses = 4;
  static constexpr std::int64_t kDialUs = 10'000'000;

  Dialer(Poll& poll, Fd launcher, NameFiles files, std::uint16_t dns_port = 53);
  // Whether the launcher is gone, and with it the reason to be.
  [[nodiscard]] bool done() const { return done_; }

 private:
  struct Dial {
    std::uint64_t workspace;
    std::uint32_t id;
    std::uint16_t port;
    Host host;
    std::shared_ptr<const List> list;
    std::optional<Task<bool>> task;
  };
  bool ordered(const OrderHead& order, std::vector<Fd> fds);
  bool set_lists(const OrderHead& order, const Fd& file);
  [[nodiscard]] std::shared_ptr<const List> list_of(std::uint64_t workspace, std::string_view domain) const;
  bool set_peer(Fd fd);
  bool asked(std::string_view message, std::size_t descriptors);
  [[nodiscard]] Task<bool> dial(Dial& dial);
  [[nodiscard]] Task<DialAnswer> choose_and_connect(Dial& dial, Fd& connection);
  [[nodiscard]] Task<DialAnswer> try_each(Dial& dial, std::vector<Address> addresses, std::int64_t deadline_us, DialAnswer answer,
                                          Fd& connection);
  void answer(const DialAnswer& answer, Fd connection);

  Poll& poll_;
  NameFiles files_;
  Resolver resolver_;
  LauncherLine launcher_;
  std::unique_ptr<Link> door_;
  std::map<std::uint64_t, Lists> lists_;  // of workspaces
  std::map<std::uint32_t, std::unique_ptr<Dial>> dials_;
  bool done_ = false;
};

}  // namespace caisson::egress
