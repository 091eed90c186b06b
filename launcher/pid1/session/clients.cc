#include "launcher/pid1/session/clients.h"

namespace caisson::session {

ipc::Connection* Clients::find(std::uint64_t number) const {
  const auto it = clients_.find(number);
  return it == clients_.end() ? nullptr : it->second.connection.get();
}

std::uint64_t Clients::serve(Fd socket, Role role, Closed closed) {
  ipc::Connection::Handler handler{.request = request_,
                                   .violation = [this](ipc::Connection& c, const std::string& why) { drop(c.number(), why); },
                                   .closed = [this](ipc::Connection& c) { drop(c.number()); }};
  auto connection = std::make_unique<ipc::Connection>(std::move(socket), host_.loop, std::move(handler));
  const std::uint64_t number = connection->number();
  ipc::Connection* raw = connection.get();
  clients_.emplace(number, Client{std::move(connection), role, std::move(closed), {}});
  if (!raw->start()) drop(number);
  return number;
}

void Clients::drop(std::uint64_t number, const std::string& violation) {
  auto node = clients_.extract(number);
  if (node.empty()) return;
  node.mapped().connection->drop();
  record_dropped(node.mapped().refusals);
  gone_(number, node.mapped().role);
  // The connection's own function is on the stack.
  host_.loop.after(0, [client = std::make_shared<Client>(std::move(node.mapped())), violation] {
    client->connection.reset();
    client->closed(violation);
  });
}

void Clients::tell_all(const json::Value& event) const {
  for (const auto& [number, client] : clients_) client.connection->event(event);
}

void Clients::answer(std::uint64_t number, std::int64_t request, json::Value fields, std::vector<Fd> fds) const {
  if (ipc::Connection* client = find(number); client != nullptr && request != 0)
    client->reply(request, std::move(fields), std::move(fds));
}

void Clients::refuse(std::uint64_t number, std::int64_t request, const Error& error, const std::string& step) const {
  if (ipc::Connection* client = find(number); client != nullptr && request != 0) client->reply_error(request, error, step);
}

bool Clients::record_refused(std::uint64_t number, const json::Value& refused) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return false;
  Refusals& refusals = client->second.refusals;
  if (refusals.take(sys::monotonic_us())) {
    host_.record(audit::Event::request_refused, refused);
    return true;
  }
  if (refusals.dropped() == 1)
    host_.loop.after(Refusals::kReportUs, [this, number] {
      if (const auto still = clients_.find(number); still != clients_.end()) record_dropped(still->second.refusals);
    });
  return false;
}

void Clients::record_dropped(Refusals& refusals) const {
  if (const std::uint64_t count = refusals.take_dropped(); count > 0)
    host_.record(audit::Event::request_refused,
                 {{"dropped", count}, {"what", "refused like those before, too often to record each"}});
}

}  // namespace caisson::session
