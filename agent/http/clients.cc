// The connected clients, and the order in which connections are closed when memory or connection slots run out.
#include <algorithm>
#include <utility>

#include "agent/http/connection_impl.h"
#include "agent/http/peer.h"

namespace caisson::http {

std::string address_of(const asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  return error ? "" : peer.address().to_string();
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
  // A WebSocket may end later than the server, and holds its payers. Where nobody is slow nobody becomes so at once, and many
  // may ask: all connections are looked at again after a while only.
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
  std::pair<std::size_t, double> worst;  // held by its client, and how much slower than is asked
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
  for (const Connection* connection : open) ++count[connection->client_payer()];
  const Budget::PayerPtr own = client(address);
  const Budget::Payer* pays = own.get();
  if (count[pays] < limits.connections_of_one) {
    if (open.size() < limits.connections) return true;
    pays = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;
  }
  Connection* const slow = slowest(&Connection::client_payer, pays, 0, false);
  if (slow != nullptr) slow->give_up();
  return slow != nullptr;
}

}  // namespace caisson::http
