#include "launcher/egress/opener/opener.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "launcher/common/base/word.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/egress/opener/visit.h"
#include "launcher/egress/opener/wrapped.h"

namespace caisson::egress {

Opener::Opener(Poll& poll, Fd launcher, Trust trust, std::size_t most_connections)
    : poll_(poll),
      trust_(std::move(trust)),
      most_connections_(most_connections),
      wrapping_(most_connections),
      launcher_(
          poll, std::move(launcher),
          [this](const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
            return ordered(order, text, std::move(fds));
          },
          [this] { done_ = true; }) {
  (void)launcher_.tell(Said::ready, 0);
}

Opener::~Opener() = default;

bool Opener::ordered(const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
  switch (order.order) {
    case Order::open:
      return fds.size() == 1 && open(order, fds.front());
    case Order::close:
      places_.erase(order.workspace);
      return fds.empty() && launcher_.tell(Said::closed, order.workspace);
    case Order::peer:
      return fds.size() == 1 && set_door(std::move(fds.front()));
    case Order::dialer:
      return fds.size() == 1 && set_dialer(std::move(fds.front()));
    case Order::secret:
      return fds.size() == 1 && set_secret(order, text, fds.front());
    case Order::seed:
      return fds.size() == 1 && set_seed(fds.front());
    case Order::member:
    case Order::ports:
    case Order::grants:
    case Order::connector:
    case Order::opener:
    case Order::upstream:
    case Order::inside:
    case Order::mappings:
    case Order::probe:
      return false;  // the others'
  }
  return false;
}

bool Opener::open(const OrderHead& order, const Fd& file) {
  const auto bytes = bytes_of(file.get(), kMaxListsBytes);
  auto lists = bytes ? read_lists(*bytes) : fail(Code::io, "read the lists");
  if (!lists) return false;
  std::unique_ptr<Place>& place = places_[order.workspace];
  if (!place) place = std::make_unique<Place>(poll_, launcher_, trust_, authority_, order.workspace);
  place->set_lists(std::move(*lists), order.generation);
  return certify();
}

// For the hosts that are opened now, with the key that it has once and for all. What believes the certificate from before goes
// on, but for hosts that it does not name.
bool Opener::certify() {
  std::set<std::string> hosts;
  for (const auto& [id, place] : places_) place->add_hosts(hosts);
  if (hosts.empty() || (authority_ && authority_->hosts() == hosts)) return true;
  if (!authority_) {
    auto made = Authority::create(seed_);
    if (!made) return false;
    authority_ = std::move(*made);
  }
  return authority_->certify(std::move(hosts)) &&
         launcher_.tell(Said::authority, 0, authority_->name_hash() + '\n' + authority_->pem());
}

bool Opener::set_seed(const Fd& file) {
  auto bytes = bytes_of(file.get(), kSeedBytes);
  if (!bytes || bytes->size() != kSeedBytes || authority_) return false;
  seed_ = std::move(*bytes);
  return true;
}

bool Opener::set_secret(const OrderHead& order, std::string_view text, const Fd& file) {
  const auto place = places_.find(order.workspace);
  const std::size_t space = text.find(' ');
  auto secret = bytes_of(file.get(), kMaxSecret);
  if (place == places_.end() || space == std::string_view::npos || !secret) return false;
  return place->second->set_secret(text.substr(0, space), text.substr(space + 1), std::move(*secret));
}

// What an old door has handed over goes on.
bool Opener::set_door(Fd fd) {
  door_.reset();
  door_ = std::make_unique<Link>(
      poll_, std::move(fd), [this](std::string_view message, std::vector<Fd> fds) { return handed(message, std::move(fds)); },
      [this] { done_ = done_ || door_->broken(); });
  return true;
}

// What an old dialer has handed over goes on.
bool Opener::set_dialer(Fd fd) {
  dialer_.reset();
  dialer_ = std::make_unique<Link>(
      poll_, std::move(fd), [this](std::string_view message, std::vector<Fd> fds) { return wrap(message, std::move(fds)); },
      [this] { done_ = done_ || dialer_->broken(); });
  return true;
}

// Beyond its share of the limit a workspace's connection is closed.
bool Opener::wrap(std::string_view message, std::vector<Fd> fds) {
  WrapRequest request{};
  if (message.size() < sizeof request || fds.size() != 2) return false;
  std::memcpy(&request, message.data(), sizeof request);
  const std::string_view texts = message.substr(sizeof request);
  if (texts.size() != std::size_t{request.host_bytes} + request.domain_bytes || request.host_bytes == 0 || request.port == 0)
    return false;
  Wrapped::To to{.workspace = request.workspace,
                 .port = request.port,
                 .host = std::string(texts.substr(0, request.host_bytes)),
                 .domain = std::string(texts.substr(request.host_bytes))};
  Share share = wrapping_.take(request.workspace);
  if (!share) return true;
  const auto end = [this](Wrapped& over) { wrapped_.erase(over.entry); };
  wrapped_.push_back(std::make_unique<Wrapped>(poll_, launcher_, trust_, std::move(to), std::move(fds[0]), std::move(fds[1]),
                                               std::move(share), end));
  wrapped_.back()->entry = std::prev(wrapped_.end());
  wrapped_.back()->begin();
  return true;
}

bool Opener::handed(std::string_view message, std::vector<Fd> fds) {
  OpenRequest request{};
  if (message.size() < sizeof request || fds.size() != 2) return false;
  std::memcpy(&request, message.data(), sizeof request);
  std::string_view left = message.substr(sizeof request);
  const auto take = [&left](std::size_t size) {
    const std::string_view taken = left.substr(0, size);
    left.remove_prefix(taken.size());
    return std::string(taken);
  };
  Visit::To to;
  to.host = take(request.host_bytes), to.domain = take(request.domain_bytes), to.session = take(request.session_bytes);
  to.ahead = left;
  auto host = read_host(to.host);
  if (!host || host_text(*host) != to.host || request.port == 0) return false;
  to.place = {std::move(*host), request.port};
  const auto found = places_.find(request.workspace);
  if (found == places_.end()) return true;  // closed meanwhile
  Place& place = *found->second;
  std::size_t all = 0;
  for (const auto& [id, one] : places_) all += one->visits();
  const auto list = place.list_of(to.domain);
  // Beyond the limit the sockets are closed; the door counts what it has, this one what it was given.
  if (!list || place.visits_of(to.domain) >= list->limits.connections || all >= most_connections_) {
    JsonText told;
    told.string("domain", to.domain).string("event", "refusal").string("via", "opened").string("host", to.host);
    told.number("port", to.place.port).string("refusal", word(words(Refusal{}), static_cast<std::size_t>(Refusal::limit)));
    told.string("detail", "too many connections to opened hosts at once");
    if (!to.session.empty()) told.string("session", to.session);
    if (place.records.take(poll_.now_us())) (void)launcher_.tell(Said::record, place.id, told.text());
    return true;
  }
  place.add(std::make_unique<Visit>(place, std::move(to), std::move(fds[0]), std::move(fds[1])));
  return true;
}

}  // namespace caisson::egress
