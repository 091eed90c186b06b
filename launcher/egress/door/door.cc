#include "launcher/egress/door/door.h"

#include <algorithm>
#include <cstring>

#include "launcher/egress/door/connection.h"
#include "launcher/egress/door/connectors.h"
#include "launcher/egress/door/names_service.h"

namespace caisson::egress {
namespace {

constexpr std::int64_t kTellUs = 1'000'000;
// Of an order that opens: TCP for IPv4 and IPv6, names; then may come that of Owners. Or one: that of connectors.
constexpr std::size_t kSockets = 3;

}  // namespace

Door::Door(Poll& poll, Fd launcher, std::size_t most_connections)
    : poll_(poll),
      launcher_(
          poll, std::move(launcher),
          [this](const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
            return ordered(order, text, std::move(fds));
          },
          [this] { done_ = true; }),
      dialer_(poll, [this] { done_ = true; }),
      inside_(poll, launcher_),
      opener_(poll),
      house_{.poll = poll,
             .launcher = launcher_,
             .dialer = dialer_,
             .inside = inside_,
             .opener = opener_,
             .pipes = pipes_,
             .most_connections = most_connections},
      telling_(poll, [this] { tell(); }) {
  (void)launcher_.tell(Said::ready, 0);
  telling_.set(poll_.now_us() + kTellUs);
}

Door::~Door() = default;

bool Door::ordered(const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
  switch (order.order) {
    case Order::open:
      return open(order, std::move(fds));
    case Order::close:
      return fds.empty() && close(order);
    case Order::peer:
      if (fds.size() != 1) return false;
      dialer_.set_peer(std::move(fds.front()));
      return true;
    case Order::member:
      return fds.empty() && set_member(order, text);
    case Order::connector:
      return add_connector(order, text, std::move(fds));
    case Order::opener:
      if (fds.size() != 1) return false;
      opener_.set_peer(std::move(fds.front()));
      return true;
    case Order::inside:
      return inside_.heard(text, std::move(fds));
    case Order::mappings:
      return fds.empty() && set_mappings(order, text);
    case Order::grants:
      return fds.empty() && set_grants(order, text);
    case Order::ports:
      return add_ports(order, std::move(fds));
    case Order::upstream:
    case Order::probe:
    case Order::dialer:
    case Order::secret:
    case Order::seed:
      return false;  // the others'
  }
  return false;
}

// The first order for a workspace brings its sockets, later ones newer lists alone.
bool Door::open(const OrderHead& order, std::vector<Fd> fds) {
  std::unique_ptr<Workspace>& workspace = workspaces_[order.workspace];
  const bool first = workspace == nullptr;
  const std::size_t sockets = fds.size() - 1;
  if (fds.empty() || (first ? sockets != 1 && sockets != kSockets && sockets != kSockets + 1 : sockets != 0)) return false;
  const auto bytes = bytes_of(fds[0].get(), kMaxListsBytes);
  const auto lists = bytes ? read_lists(*bytes) : fail(Code::io, "read the lists");
  if (!lists) return false;
  if (first) workspace = std::make_unique<Workspace>(house_, order.workspace);
  workspace->set_lists(*lists, order.generation);
  if (!first) return true;
  if (sockets == 1) return workspace->listen(std::move(fds[1])).has_value();
  Fd diag = sockets > kSockets ? std::move(fds[4]) : Fd();
  return workspace->listen(std::move(fds[1]), std::move(fds[2]), std::move(fds[3]), std::move(diag)).has_value();
}

bool Door::set_member(const OrderHead& order, std::string_view text) {
  Cgroup cgroup{};
  const auto workspace = workspaces_.find(order.workspace);
  if (text.size() < sizeof cgroup || text.size() > sizeof cgroup + kMaxMember) return false;
  std::memcpy(&cgroup, text.data(), sizeof cgroup);
  // One that was closed meanwhile has nothing that waits.
  return workspace == workspaces_.end() || workspace->second->set_member(cgroup.id, text.substr(sizeof cgroup));
}

bool Door::set_mappings(const OrderHead& order, std::string_view text) {
  auto read = read_mappings(text);
  if (!read) return false;
  const auto workspace = workspaces_.find(order.workspace);
  if (workspace != workspaces_.end()) workspace->second->mappings = std::make_shared<const Mappings>(std::move(*read));
  return true;
}

bool Door::set_grants(const OrderHead& order, std::string_view text) {
  auto read = read_grants(text);
  if (!read) return false;
  const auto workspace = workspaces_.find(order.workspace);
  if (workspace != workspaces_.end()) workspace->second->set_grants(std::move(*read));
  return true;
}

bool Door::add_connector(const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
  const auto workspace = workspaces_.find(order.workspace);
  if (fds.size() != 1 || text.size() > kMaxWhose) return false;
  if (workspace == workspaces_.end()) return true;  // it was closed meanwhile
  Connectors* connectors = workspace->second->connectors();
  if (connectors != nullptr) connectors->add(text, std::move(fds.front()));
  return connectors != nullptr;
}

bool Door::add_ports(const OrderHead& order, std::vector<Fd> fds) {
  const auto workspace = workspaces_.find(order.workspace);
  if (fds.empty()) return false;
  if (workspace == workspaces_.end()) return true;  // it was closed meanwhile
  return std::ranges::all_of(fds, [&](Fd& fd) { return workspace->second->listen_also(std::move(fd)).has_value(); });
}

bool Door::close(const OrderHead& order) {
  const auto workspace = workspaces_.extract(order.workspace);
  if (workspace.empty()) return launcher_.tell(Said::closed, order.workspace);
  workspace.mapped()->end_all();
  return launcher_.tell(Said::closed, order.workspace);
}

void Door::tell() {
  for (const auto& [id, workspace] : workspaces_) workspace->tell();
  telling_.set(poll_.now_us() + kTellUs);
}

}  // namespace caisson::egress
