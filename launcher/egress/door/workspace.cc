#include "launcher/egress/door/workspace.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "launcher/egress/door/connection.h"
#include "launcher/egress/door/connectors.h"
#include "launcher/egress/door/names_service.h"
#include "launcher/egress/door/permitted.h"

namespace caisson::egress {
namespace {

struct Place {
  Address address;
  std::uint16_t port = 0;
};

// Where the client wanted to connect to: the listener is a transparent one.
std::optional<Place> destination(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  Place out;
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof v4);
    std::memcpy(out.address.bytes.data(), &v4.sin_addr, 4);
    out.port = ntohs(v4.sin_port);
    return out;
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, &storage, sizeof v6);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) != 0;
  out.address.v6 = !mapped;
  std::memcpy(out.address.bytes.data(), v6.sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
  out.port = ntohs(v6.sin6_port);
  return out;
}

}  // namespace

Workspace::Workspace(House& house_, std::uint64_t id_)
    : house(house_), id(id_), records(house_.launcher, id_), kept(house_.poll, house_.kept, house_.most_connections) {}

Workspace::~Workspace() = default;

void Workspace::end_all() {
  for (const auto& connection : connections_) connection->end_now();
  connections_.clear();
  records.tell(0, true);
}

void Workspace::set_lists(const Lists& lists, std::uint32_t generation_) {
  generation = generation_;
  alike_ = lists.alike;
  std::erase_if(ways, [&lists](const auto& way) { return !lists.of.contains(way.first); });
  for (const auto& [domain, list] : lists.of) {
    std::shared_ptr<Way>& way = ways[domain];
    if (!way) way = std::make_shared<Way>(domain);
    // Lists come again whenever a client changes something: what is spent stays spent.
    const bool same = way->list && way->list->limits == list->limits;
    way->list = list;
    if (same) continue;
    way->admission.emplace(list->limits);
    way->bytes = std::make_shared<ByteBudget>(list->limits.bytes_per_second);
  }
}

Status Workspace::listen(Fd v4, Fd v6, Fd names_socket, Fd diag) {
  apart_ = static_cast<bool>(diag);
  owners_ = capture::Owners(std::move(diag));
  names_service_ = std::make_unique<NamesService>(*this);
  TRY(listen_also(std::move(v4)));
  TRY(listen_also(std::move(v6)));
  return names_service_->begin(std::move(names_socket));
}

Status Workspace::listen_also(Fd listener) {
  listeners_.push_back(
      std::make_unique<Listener>(house.poll, std::move(listener), [this](Fd client) { accepted(std::move(client)); }));
  return listeners_.back()->begin();
}

Status Workspace::listen(Fd listener) {
  names_service_ = std::make_unique<NamesService>(*this);
  connectors_ = std::make_unique<Connectors>(*this);
  return connectors_->listen(std::move(listener));
}

std::optional<Host> Workspace::host_at(const Address& address) {
  auto name = names.name_of(address, house.poll.now_us());
  return name ? std::optional<Host>(std::move(*name)) : std::nullopt;
}

void Workspace::accepted(Fd client) {
  records.accepted();
  const auto place = destination(client.get());
  if (!place) return;
  Arrival arrival{std::move(client), place->address, place->port};
  if (!apart_) {
    if (alike_ && !ways.empty()) return identified(std::move(arrival), {"", ways.begin()->second});
    return refuse(arrival, {}, Refusal::unidentified, "lists differ, and sessions cannot be told apart here");
  }
  const auto cgroup = owners_.cgroup_of(arrival.client.get());
  if (!cgroup) return refuse(arrival, {}, Refusal::unidentified, "the client is gone");
  if (const auto known = sessions_.find(*cgroup); known != sessions_.end())
    return identified(std::move(arrival), member_of(known->second));
  if (waiting_count_ >= kMostWaiting) return refuse(arrival, {}, Refusal::limit);
  std::vector<Arrival>& waiting = waiting_[*cgroup];
  const Cgroup asked{*cgroup};
  if (waiting.empty() && !house.launcher.tell(Said::whose, id, {reinterpret_cast<const char*>(&asked), sizeof asked})) {
    waiting_.erase(*cgroup);
    return refuse(arrival, {}, Refusal::limit);
  }
  waiting.push_back(std::move(arrival));
  ++waiting_count_;
}

// What is no session's is asked about again: its cgroup may become one's.
bool Workspace::set_member(std::uint64_t cgroup, std::string_view text) {
  auto waiting = waiting_.extract(cgroup);
  if (waiting.empty()) return false;
  waiting_count_ -= waiting.mapped().size();
  if (sessions_.size() >= kMostSessions) sessions_.clear();
  if (!text.empty()) sessions_.emplace(cgroup, text);
  for (Arrival& arrival : waiting.mapped()) identified(std::move(arrival), member_of(text));
  return true;
}

Member Workspace::member_of(std::string_view text) const {
  const std::size_t space = text.find(' ');
  const auto way = space != std::string_view::npos ? ways.find(text.substr(space + 1)) : ways.end();
  return {std::string(text.substr(0, space)), way != ways.end() ? way->second : nullptr};
}

void Workspace::identified(Arrival arrival, const Member& whose) {
  if (apart_ && whose.session.empty()) return refuse(arrival, whose, Refusal::unregistered, "no session's");
  if (!whose.way) return refuse(arrival, whose, Refusal::not_listed, "the session has no way out");
  if (const Refusal refusal = admitted(whose); refusal != Refusal::none) return refuse(arrival, whose, refusal);
  begin(std::move(arrival.client), arrival.address, arrival.port, whose, std::nullopt);
}

Refusal Workspace::admitted(const Member& whose) {
  if (!whose.way) return Refusal::not_listed;
  if (house.connections >= house.most_connections) return Refusal::limit;
  const auto answer = whose.way->admission->admit(whose.way->connections, house.poll.now_us());
  if (answer == Admission::Answer::admitted) return Refusal::none;
  return answer == Admission::Answer::too_fast ? Refusal::rate : Refusal::limit;
}

void Workspace::set_grants(Grants grants) {
  for (Grant& one : grants)
    one.used = one.used || std::ranges::any_of(grants_, [&one](const Grant& old) { return old.id == one.id && old.used; });
  grants_ = std::move(grants);
}

bool Workspace::permits(const List& list, const Member& whose, std::uint32_t& using_, const Host& host, std::uint16_t port,
                        Verdict& verdict, Facts& facts) {
  const std::uint32_t before = using_;
  const bool may = permitted(list, {grants_, {whose.way->domain, whose.session}, using_}, host, port, verdict, facts);
  const Used used{using_};
  if (using_ != before) (void)house.launcher.tell(Said::used, id, {reinterpret_cast<const char*>(&used), sizeof used});
  return may;
}

void Workspace::begin(Fd client, const Address& to, std::uint16_t port, const Member& whose, std::optional<Dialed> dialed,
                      std::uint32_t grant) {
  connections_.push_back(std::make_unique<Connection>(*this, whose, std::move(client), to, port, std::move(dialed), grant));
  Connection& made = *connections_.back();
  made.place = std::prev(connections_.end());
  made.begin();
}

void Workspace::refuse(const Arrival& arrival, const Member& whose, Refusal refusal, std::string_view detail) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(arrival.client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  Facts facts;
  const auto host = host_at(arrival.address);
  facts.host = host ? host_text(*host) : arrival.address.text(), facts.port = arrival.port, facts.refusal = refusal;
  facts.generation = generation, facts.detail = detail;
  records.refused(whose, facts, house.poll.now_us());
}

void Workspace::end(Connection& connection) {
  std::shared_ptr<Connection> dead(std::move(*connection.place));
  connections_.erase(connection.place);
  house.poll.later([dead] {});  // what called this belongs to it
}

}  // namespace caisson::egress
