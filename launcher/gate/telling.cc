// What door, dialer and opener are told of how a workspace stands, each at its turn (orders.h).
#include <algorithm>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/gate/files.h"
#include "launcher/gate/gate.h"
#include "launcher/gate/secrets.h"

namespace caisson::gate {
namespace {

// What it is about: all that a process needs, or a part of it.
constexpr std::string_view kAll = "all", kUpstreams = "upstreams", kLists = "lists", kMappings = "mappings", kGrants = "grants";

std::string about(std::string_view what, std::uint64_t workspace) { return std::string(what) + " " + std::to_string(workspace); }

}  // namespace

// At its turn, if there still is such a workspace.
void Gate::tell(Service& to, std::string_view what, std::uint64_t number, std::function<void(Gate&, const Entry&)> say) {
  to.state(about(what, number), [this, number, say = std::move(say)] {
    const auto entry = workspaces_.find(number);
    if (entry != workspaces_.end()) say(*this, entry);
  });
}

void Gate::tell_dialer(const Entry& entry) { tell(dialer_, kAll, entry->first, &Gate::say_dialer); }
void Gate::tell_upstreams(const Entry& entry) { tell(dialer_, kUpstreams, entry->first, &Gate::say_upstreams); }
void Gate::tell_door(const Entry& entry) { tell(door_, kAll, entry->first, &Gate::say_door); }
void Gate::tell_lists(const Entry& entry) { tell(door_, kLists, entry->first, &Gate::say_lists); }
void Gate::tell_mappings(const Entry& entry) { tell(door_, kMappings, entry->first, &Gate::say_mappings); }

bool Gate::door_waits(std::uint64_t workspace) const { return door_.waits(about(kAll, workspace)); }

// A dialer that was taken over asks for what it has already.
void Gate::tell_upstream(const Entry& entry, const std::string& domain) {
  if (!entry->second.settings.lists().of.contains(domain)) return;
  tell(dialer_, "upstream of " + domain, entry->first, [domain](Gate& gate, const Entry& at) { gate.say_upstream(at, domain); });
}

// Upstream proxies before the lists: nothing goes out that was to go through one.
void Gate::say_dialer(const Entry& entry) {
  say_upstreams(entry);
  dialer_.send({egress::Order::open, entry->second.generation, entry->first}, {entry->second.list.get()});
  if (entry->second.granted) say_grants(dialer_, entry);
}

void Gate::say_upstreams(const Entry& entry) {
  for (const auto& [domain, list] : entry->second.settings.lists().of) say_upstream(entry, domain);
}

void Gate::say_upstream(const Entry& entry, const std::string& domain) {
  const auto upstream = upstream_of(entry, domain);
  dialer_.send({egress::Order::upstream, entry->second.generation, entry->first}, {},
               domain + '\n' + (upstream ? upstream_bytes(*upstream) : ""));
}

void Gate::say_lists(const Entry& entry) {
  door_.send({egress::Order::open, entry->second.generation, entry->first}, {entry->second.list.get()});
}

void Gate::say_mappings(const Entry& entry) {
  door_.send({egress::Order::mappings, entry->second.generation, entry->first}, {},
             mapping_bytes(entry->second.settings.mappings()));
}

// With what its file has at this moment. Without it the proxy is asked all the same, and says that it needs a credential.
std::optional<egress::Upstream> Gate::upstream_of(const Entry& entry, const std::string& domain) {
  auto upstream = entry->second.settings.upstream_of(domain);
  if (!upstream || (upstream->secret.empty() && upstream->command.empty())) return upstream;
  if (const Status taken = credential_now(entry, *upstream); !taken)
    failed(entry->second.name, "the upstream proxy's secret: " + taken.error().text());
  upstream->secret.clear(), upstream->command.clear();
  return upstream;
}

// The lists and, one by one, the secrets that they bind, which are read anew each time. One that cannot be read is unbound,
// also where it was read before: its placeholder is refused.
void Gate::tell_opener(const Entry& entry) {
  if (needs_opener(entry->second) && !std::exchange(opens_, true)) {
    if (auto seed = new_seed(); seed) seed_ = std::move(*seed);
    look_at_secrets();
    return opener_.start();  // told all by started()
  }
  tell(opener_, kAll, entry->first, &Gate::say_opener);
}

void Gate::say_opener(const Entry& entry) {
  const Workspace& workspace = entry->second;
  const egress::OrderHead head{egress::Order::open, workspace.generation, entry->first};
  opener_.send(head, {workspace.list.get()});
  for (const auto& [domain, list] : workspace.settings.lists().of)
    for (const egress::Binding& binding : list->bindings) {
      auto secret = secret_now(entry, domain, binding);
      if (!secret) failed(workspace.name, "secret " + binding.name + ": " + secret.error().text());
      if (!secret) secret = no_secret();
      if (secret)
        opener_.send({egress::Order::secret, head.generation, head.workspace}, {secret->get()}, domain + " " + binding.name);
    }
}

void Gate::say_door(const Entry& entry) {
  const capture::Sockets& sockets = entry->second.sockets;
  const egress::OrderHead head{egress::Order::open, entry->second.generation, entry->first};
  const int list = entry->second.list.get();
  figures_.begin(entry->first);
  if (const auto& connectors = entry->second.connectors; connectors) {
    door_.send(head, {list, connectors->listener()});
    for (const Connectors::One& one : connectors->all()) say_connector(entry, one);
  } else {
    std::vector<int> fds = {list, sockets.tcp4.get(), sockets.tcp6.get(), sockets.names.get()};
    if (sockets.owners) fds.push_back(sockets.owners.get());
    door_.send(head, fds);
    say_ports(entry, sockets.ports);
  }
  if (!entry->second.settings.mappings().empty()) say_mappings(entry);
  if (entry->second.granted) say_grants(door_, entry);
}

// The dialer first: what the door lets through is to meet the same grants.
void Gate::tell_grants(const Entry& entry) {
  Workspace& workspace = entry->second;
  const bool some = !workspace.asking.in_force(sys::monotonic_us()).empty();
  if (!some && !workspace.granted) return;
  workspace.granted = some;
  for (Service* to : {&dialer_, &door_})
    tell(*to, kGrants, entry->first, [to](Gate& gate, const Entry& at) { gate.say_grants(*to, at); });
  loop_.cancel(std::exchange(workspace.next_end, 0));
  const std::int64_t due_us = workspace.asking.due_us();
  if (due_us == 0) return;
  workspace.next_end = loop_.after(std::max<std::int64_t>(due_us - sys::monotonic_us(), 0), [this, number = entry->first] {
    const auto at = workspaces_.find(number);
    if (at == workspaces_.end()) return;
    at->second.next_end = 0;
    tell_grants(at);
  });
}

void Gate::say_grants(Service& to, const Entry& entry) {
  to.send({egress::Order::grants, entry->second.generation, entry->first}, {},
          grant_bytes(entry->second.asking.in_force(sys::monotonic_us())));
}

void Gate::say_connector(const Entry& entry, const Connectors::One& one) {
  door_.send({egress::Order::connector, entry->second.generation, entry->first}, {one.line.get()}, one.whose);
}

}  // namespace caisson::gate
