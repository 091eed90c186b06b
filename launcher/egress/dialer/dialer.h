// The dialer: connects for the door. What the door asks for is checked against the same list once more, a name is resolved once,
// every address is filtered, and the connection goes to an address that was checked; or through an upstream proxy, to which it
// says the credential. It never sees a byte of a session: a taken-over dialer knows the credentials of proxies and no other
// secret, and a taken-over door reaches what some workspace's list permits and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/task.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/common/telling/shares.h"
#include "launcher/egress/dialer/name_files.h"
#include "launcher/egress/dialer/resolver.h"
#include "launcher/egress/dialer/sockets.h"
#include "launcher/egress/dialer/upstreams.h"
#include "launcher/egress/list/grant.h"
#include "launcher/egress/list/lists.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

class Dialer {
 public:
  static constexpr std::size_t kMostDials = 4096;  // at once, of all workspaces; the door keeps to each domain's limits
  static constexpr std::size_t kMostAddresses = 4;
  static constexpr std::int64_t kDialUs = 10'000'000;
  static constexpr std::uint64_t kProbes = 1ULL << 32;

  Dialer(Poll& poll, Fd launcher, NameFiles files, std::uint16_t dns_port = 53);
  // Whether the launcher is gone, and with it the reason to be.
  [[nodiscard]] bool done() const { return done_; }

 private:
  struct Dial {
    std::uint64_t key;  // of dials_
    std::uint64_t workspace;
    std::uint32_t id;
    std::uint16_t port;
    Host host;
    std::string domain;
    std::shared_ptr<const List> list;
    Share share;
    std::optional<Task<bool>> task;
  };
  using Way = std::shared_ptr<const Upstream>;
  bool ordered(const OrderHead& order, std::string_view text, std::vector<Fd> fds);
  bool set_lists(const OrderHead& order, const Fd& file);
  [[nodiscard]] std::shared_ptr<const List> list_of(std::uint64_t workspace, std::string_view domain) const;
  // By the list, or by a grant of the domain's: the dialer is not told whose session it is for.
  [[nodiscard]] Verdict judge(const Dial& dial);
  bool set_peer(Fd fd);
  bool set_opener(Fd fd);
  void drop_dials();  // of the door
  bool asked(std::string_view message, std::size_t descriptors);
  bool begin(std::uint64_t key, const DialRequest& request, std::string_view text);
  [[nodiscard]] Task<bool> dial(Dial& dial);
  [[nodiscard]] Task<DialAnswer> choose_and_connect(Dial& dial, Fd& connection);
  // Those of the host that may be connected to; none where `answer` says why.
  [[nodiscard]] Task<std::vector<Address>> choose(Dial& dial, Verdict verdict, DialAnswer& answer, std::int64_t deadline_us);
  [[nodiscard]] Task<DialAnswer> try_each(std::vector<Address> addresses, std::uint16_t port, std::int64_t deadline_us,
                                          DialAnswer answer, Fd& connection);
  // dial_through.cc
  [[nodiscard]] Task<DialAnswer> dial_through(Dial& dial, Way upstream, std::string host, std::int64_t deadline_us,
                                              DialAnswer answer, Fd& connection);
  // An end of a pair, behind which the opener speaks TLS over this connection. Empty: the opener is not there.
  [[nodiscard]] Fd wrapped(const Dial& dial, const Upstream& upstream, Fd connection);
  [[nodiscard]] Task<DialAnswer> dial_proxy(Dial& dial, Way upstream, std::int64_t deadline_us, DialAnswer answer, Fd& proxy);
  void answer(std::uint64_t key, std::uint64_t workspace, const DialAnswer& answer, Fd connection);

  Poll& poll_;
  NameFiles files_;
  Resolver resolver_;
  OwnAddresses own_;
  LauncherLine launcher_;
  Upstreams upstreams_;
  std::unique_ptr<Link> door_, opener_;
  std::map<std::uint64_t, Lists> lists_;    // of workspaces
  std::map<std::uint64_t, Grants> grants_;  // of those that have some
  Shares shares_{kMostDials};
  std::map<std::uint64_t, std::unique_ptr<Dial>> dials_;  // by id; those of the launcher's probes, kProbes is added
  bool done_ = false;
};

[[nodiscard]] DialAnswer refused(DialAnswer answer, Refusal refusal);

}  // namespace caisson::egress
