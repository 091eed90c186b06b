// The connected clients, and the order in which connections are closed when memory or connection slots run out.
#include <algorithm>
#include <utility>

#include "agent/http/connection_impl.h"
#include "agent/http/peer.h"

namespace caisson::http {

std::string address_of(const asio::ip::tcp::socket& socket, const std::string& inside) {
  if (!inside.empty()) return "workspace:" + inside;
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return "";
  // An IPv4 client of a socket for both families is the same client.
  const auto address = peer.address();
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string() : address.to_string();
}

std::string network_of(const std::string& address) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  if (error || !parsed.is_v6() || parsed.to_v6().is_v4_mapped()) return address;
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string();
}

Budget::PayerPtr Server::State::payer(Payers& known, PaidBy of, const std::string& name, std::size_t part) {
  if (Budget::PayerPtr there = known[name].lock()) return there;
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  Budget::PayerPtr made = budget->open(part);
  // A WebSocket may outlive the server and holds its payers. If no connection is slow now, none will be slow in the next moment,
  // and many requests may ask: the connections are examined again only after a while.
  made->give_back = [weak = weak_from_this(), of, payer = made.get(),
                     again = Pace::Clock::time_point()](const Budget::Payer& asker) mutable {
    const std::shared_ptr<State> self = weak.lock();
    if (!self || Pace::Clock::now() < again) return false;
    Connection* const slow = self->slowest(of, payer, asker.used(), true);
    if (slow != nullptr) slow->give_up();
    else again = Pace::Clock::now() + self->limits.room_poll;
    return slow != nullptr;
  };
  known[name] = made;
  return made;
}

Budget::PayerPtr Server::State::client(const std::string& address) {
  return payer(clients_, &Connection::client_payer, network_of(address), limits.held_bytes_of_one);
}

Budget::PayerPtr Server::State::workspace(const std::string& name) {
  return payer(workspaces_, &Connection::workspace_payer, name, limits.held_bytes_of_workspace);
}

Connection* Server::State::slowest(PaidBy of, const Budget::Payer* payer, std::size_t least, bool holding) const {
  Connection* found = nullptr;
  std::pair<std::size_t, double> worst;  // bytes held by its client, and how far it is below the required pace
  for (Connection* connection : open) {
    if ((connection->*of)() != payer || (holding && connection->held() == 0)) continue;
    if (connection->held_by_client() < least) continue;
    const std::optional<double> pace = connection->slow();
    if (!pace || *pace >= static_cast<double>(limits.least_pace)) continue;
    const std::pair rank(connection->held_by_client(), static_cast<double>(limits.least_pace) - *pace);
    if (found != nullptr && rank <= worst) continue;
    found = connection;
    worst = rank;
  }
  return found;
}

bool Server::State::admits(const std::string& address) {
  std::map<const Budget::Payer*, std::size_t> count;
  std::size_t all = 0;
  for (const Connection* connection : open) {
    if (connection->is_for_probes()) continue;
    ++count[connection->client_payer()];
    ++all;
  }
  const Budget::PayerPtr own = client(address);
  const Budget::Payer* pays = own.get();
  // A trusted proxy has the connections of many clients.
  const std::size_t most = proxies.contains(address) ? limits.connections : limits.connections_of_one;
  if (count[pays] < most) {
    if (all < limits.connections) return true;
    pays = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;
  }
  Connection* const slow = slowest(&Connection::client_payer, pays, 0, false);
  if (slow != nullptr) slow->give_up();
  return slow != nullptr;
}

// The oldest come first in `open`.
void Server::State::limit_probes() const {
  std::map<const Budget::Payer*, std::size_t> count;
  std::size_t all = 0, most = 0;
  for (const Connection* connection : open) {
    if (!connection->is_for_probes()) continue;
    most = std::max(most, ++count[connection->client_payer()]);
    ++all;
  }
  if (all < limits.probe_connections) return;
  for (Connection* connection : open) {
    if (!connection->is_for_probes() || count[connection->client_payer()] < most) continue;
    connection->give_up();
    return;
  }
}

void Server::State::limit_lingering() const {
  if (lingering < limits.lingering) return;
  const auto oldest = std::ranges::find_if(open, [](const Connection* connection) { return connection->lingers(); });
  if (oldest != open.end()) (*oldest)->give_up();
}

Place Server::State::place_for(const std::string& address) {
  if (admits(address)) return Place::any;
  limit_probes();
  return Place::probes;
}

}  // namespace caisson::http
