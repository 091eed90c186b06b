// The upstream proxies of the workspaces' domains, as the launcher told them, with their credentials. One that a proxy does not
// take is renewed by the launcher, which alone knows where it comes from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "launcher/common/base/task.h"
#include "launcher/egress/list/upstream.h"
#include "launcher/egress/loop/launcher_line.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

class Upstreams {
 public:
  Upstreams(Poll& poll, LauncherLine& launcher) : poll_(poll), launcher_(launcher) {}
  // text: as of Order::upstream. False: it is none.
  [[nodiscard]] bool set(std::uint64_t workspace, std::string_view text);
  void close(std::uint64_t workspace) { ways_.erase(workspace); }
  [[nodiscard]] std::shared_ptr<const Upstream> of(std::uint64_t workspace, const std::string& domain) const;
  // Another than `refused`, whose credential the proxy does not take, or nullptr: there is none, or it does not come in time.
  // However many wait, and ask again and again, the launcher is asked once in a while.
  [[nodiscard]] Task<std::shared_ptr<const Upstream>> renewed(std::uint64_t workspace, std::string domain,
                                                              std::shared_ptr<const Upstream> refused, std::int64_t deadline_us);

 private:
  static constexpr std::int64_t kAgainUs = 2'000'000;
  class Waiting;
  struct Way {
    std::shared_ptr<const Upstream> upstream;
    std::int64_t asked_us = 0;  // when the launcher was asked last; 0: never
    std::set<Waiting*> waiting;
  };
  [[nodiscard]] std::shared_ptr<Way> find(std::uint64_t workspace, const std::string& domain) const;

  Poll& poll_;
  LauncherLine& launcher_;
  std::map<std::uint64_t, std::map<std::string, std::shared_ptr<Way>>> ways_;  // by domain; who waits outlives one
};

}  // namespace caisson::egress
