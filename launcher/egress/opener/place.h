// A workspace as the opener sees it: the lists and secrets of its domains, its connections.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launcher/common/telling/token_bucket.h"
#include "launcher/egress/list/lists.h"
#include "launcher/egress/loop/byte_budget.h"
#include "launcher/egress/loop/launcher_line.h"
#include "launcher/egress/loop/poll.h"
#include "launcher/egress/opener/authority.h"
#include "launcher/egress/opener/bindings.h"
#include "launcher/egress/opener/trust.h"

namespace caisson::egress {

class Visit;

class Place {
 public:
  // authority: of all workspaces, there as soon as a list opens something.
  Place(Poll& poll, LauncherLine& launcher, const Trust& trust, std::optional<Authority>& authority, std::uint64_t id);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // Open connections of domains whose lists are not the same any more end: what a newer one takes away is not theirs.
  void set_lists(Lists lists, std::uint32_t generation);
  // "": it is gone. False: it is no secret, or no such binding is there.
  [[nodiscard]] bool set_secret(std::string_view domain, std::string_view name, std::string secret);
  void add(std::unique_ptr<Visit> visit);
  void add_hosts(std::set<std::string>& opened) const;
  void end(Visit& visit);  // deleted at the end of the turn

  [[nodiscard]] std::shared_ptr<const Bindings> bindings_of(std::string_view domain) const;  // nullptr: it has none
  [[nodiscard]] std::shared_ptr<const List> list_of(std::string_view domain) const;
  [[nodiscard]] std::shared_ptr<ByteBudget> bytes_of(std::string_view domain) const;
  [[nodiscard]] std::size_t visits() const { return visits_.size(); }
  [[nodiscard]] std::size_t visits_of(std::string_view domain) const;

  Poll& poll;
  LauncherLine& launcher;
  const Trust& trust;
  std::optional<Authority>& authority;
  const std::uint64_t id;
  std::uint32_t generation = 0;
  TokenBucket records{500, 100};  // uses beyond that wait: each is on record

 private:
  void change(const std::string& domain, std::shared_ptr<const Bindings> to);

  Lists lists_;
  std::map<std::string, std::shared_ptr<const Bindings>, std::less<>> bindings_;
  std::map<std::string, std::shared_ptr<ByteBudget>, std::less<>> bytes_;  // of each domain that has a list
  std::list<std::unique_ptr<Visit>> visits_;
};

}  // namespace caisson::egress
