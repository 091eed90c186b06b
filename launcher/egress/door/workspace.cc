#include "launcher/egress/door/workspace.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "launcher/egress/door/connection.h"
#include "launcher/egress/door/names_service.h"

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
    : house(house_),
      id(id_),
      records(house_.launcher, id_),
      kept(house_.poll, house_.kept, house_.most_connections),
      bytes(std::make_shared<ByteBudget>(0)) {}

Workspace::~Workspace() = default;

void Workspace::end_all() {
  for (const auto& connection : connections_) connection->end_now();
  connections_.clear();
  records.tell(0, true);
}

void Workspace::set_list(std::shared_ptr<const List> list_, std::uint32_t generation_) {
  list = std::move(list_), generation = generation_;
  admission_.emplace(list->limits);
  bytes = std::make_shared<ByteBudget>(list->limits.bytes_per_second);
}

Status Workspace::listen(Fd v4, Fd v6, Fd names_socket) {
  v4_ = std::make_unique<Listener>(house.poll, std::move(v4), [this](Fd client) { accepted(std::move(client)); });
  v6_ = std::make_unique<Listener>(house.poll, std::move(v6), [this](Fd client) { accepted(std::move(client)); });
  names_service_ = std::make_unique<NamesService>(*this);
  TRY(v4_->begin());
  TRY(v6_->begin());
  return names_service_->begin(std::move(names_socket));
}

std::optional<Host> Workspace::host_at(const Address& address) {
  auto name = names.name_of(address, house.poll.now_us());
  return name ? std::optional<Host>(std::move(*name)) : std::nullopt;
}

void Workspace::accepted(Fd client) {
  records.accepted();
  const auto place = destination(client.get());
  if (!place) return;
  const auto answer = house.connections >= house.most_connections ? Admission::Answer::too_many
                                                                  : admission_->admit(connections_.size(), house.poll.now_us());
  if (answer != Admission::Answer::admitted)
    return refuse(std::move(client), place->address, place->port,
                  answer == Admission::Answer::too_fast ? Refusal::rate : Refusal::limit);
  connections_.push_back(std::make_unique<Connection>(*this, std::move(client), place->address, place->port));
  Connection& made = *connections_.back();
  made.place = std::prev(connections_.end());
  made.begin();
}

void Workspace::refuse(Fd client, const Address& address, std::uint16_t port, Refusal refusal) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  Facts facts;
  const auto host = host_at(address);
  facts.host = host ? host_text(*host) : address.text(), facts.port = port, facts.refusal = refusal,
  facts.generation = generation;
  records.refused(facts, house.poll.now_us());
}

void Workspace::end(Connection& connection) {
  std::shared_ptr<Connection> dead(std::move(*connection.place));
  connections_.erase(connection.place);
  house.poll.later([dead] {});  // what called this belongs to it
}

}  // namespace caisson::egress
