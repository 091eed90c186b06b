// The end of each turn of the server: what was queued is written, who exceeds a bound is closed, and each descriptor is watched
// for what can be done with it next. Only here clients are destroyed, so that no function above loses the one it works for.
#include <sys/epoll.h>

#include <algorithm>
#include <vector>

#include "agent/cdp/server.h"
#include "launcher/common/base/json.h"

namespace caisson::cdp {

void Server::to_browser(Outgoing message) {
  if (to_browser_ && message.size() > 0) browser_out_.push(std::move(message));
}

// A single message may be larger than what may wait: nothing could be read from the browser without it.
void Server::to_client(ClientId id, Outgoing message) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  Client& client = *it->second;
  if (client.state != State::open) return;
  if (message.size() == 0) return leave(client, "there is no memory for what is sent to it", true);
  if (!client.out.empty() && client.out.waiting() + message.size() > limits_.waiting_bytes)
    return leave(client, "it does not read what is sent to it", true);
  client.out.push(std::move(message));
}

void Server::opened(ClientId id, std::string why) {
  const auto it = clients_.find(id);
  if (it == clients_.end() || it->second->state != State::opening) return;
  Client& client = *it->second;
  loop_.cancel(client.timer);
  client.timer = 0;
  if (!why.empty()) {
    client.out.push(Outgoing::of(json::dump({{"hello", "refused"}, {"why", why}})));
    return leave(client, why, false);
  }
  client.state = State::open;
  client.out.push(Outgoing::of(json::dump({{"hello", "ok"}, {"client", id}, {"browser", browser_name_}})));
  (void)client.out.write_to(client.socket.get());  // also while clients are held: it says nothing of the browser's
}

void Server::end(ClientId id, std::string why) {
  if (const auto it = clients_.find(id); it != clients_.end()) leave(*it->second, std::move(why), false);
}

void Server::leave(Client& client, std::string why, bool at_once) {
  if (client.state != State::leaving) client.why = std::move(why);
  client.state = State::leaving;
  client.at_once |= at_once;
}

// The largest is the one that a slow or hostile peer has filled; the others go on.
void Server::enforce_total() {
  const auto held = [](const auto& row) {
    return row.second->at_once ? 0 : row.second->in.held_bytes() + row.second->out.bytes();
  };
  for (;;) {
    std::size_t total = 0;
    for (const auto& row : clients_) total += held(row);
    if (total <= limits_.held_bytes) return;
    leave(*std::ranges::max_element(clients_, {}, held)->second, "too much is held for all clients, and most for this one", true);
  }
}

bool Server::may_go(const Client& client) { return client.state == State::leaving && (client.at_once || client.out.empty()); }

bool Server::reads(const Client& client) const {
  if (client.state == State::hello) return true;
  return client.state == State::open && !held_ && browser_out_.bytes() <= limits_.to_browser_bytes;
}

void Server::close(ClientId id) {
  const auto client = std::move(clients_.extract(id).mapped());
  loop_.cancel(client->timer);
  loop_.unwatch(client->socket.get());
  events_.ended(id, client->why);
}

void Server::rewatch() {
  const bool waits = !browser_out_.empty();
  if (to_browser_ && waits != browser_waits_ && loop_.rewatch(to_browser_.get(), waits ? EPOLLOUT : 0)) browser_waits_ = waits;
  for (const auto& [id, client] : clients_) {
    const std::uint32_t events = (reads(*client) ? EPOLLIN : 0u) | (!client->out.empty() && !held_ ? EPOLLOUT : 0u);
    if (events != client->events && loop_.rewatch(client->socket.get(), events)) client->events = events;
  }
}

void Server::settle() {
  std::vector<ClientId> over;
  enforce_total();
  for (const auto& [id, client] : clients_) {
    if (!held_ && !client->at_once && client->out.write_to(client->socket.get()) == Outbox::Wrote::broken)
      leave(*client, "it has closed the connection", true);
    if (client->state != State::leaving) continue;
    router_.gone(id);
    if (may_go(*client)) over.push_back(id);
    else if (!client->farewell) {
      client->farewell = true;
      loop_.cancel(client->timer);
      client->timer = loop_.after(limits_.farewell_us, [this, id] {
        clients_.at(id)->at_once = true;
        settle();
      });
    }
  }
  for (const ClientId id : over) close(id);
  if (to_browser_ && browser_out_.write_to(to_browser_.get()) == Outbox::Wrote::broken) lose_browser();
  rewatch();
  const auto open =
      static_cast<std::size_t>(std::ranges::count_if(clients_, [](const auto& row) { return row.second->state == State::open; }));
  if (std::exchange(told_clients_, open) != open) events_.clients(open);
  if (std::exchange(browser_closed_, false)) events_.browser_closed();
}

}  // namespace caisson::cdp
