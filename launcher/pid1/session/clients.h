// The connections to the launcher: each has a number and a role. The agent sees its own sessions, an operator at the control
// socket sees all. A client that breaks the protocol is dropped; its refused requests are recorded, at a bounded rate.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/pid1/ipc/connection.h"
#include "launcher/pid1/session/host.h"
#include "launcher/pid1/session/refusals.h"

namespace caisson::session {

class Clients {
 public:
  using Role = ipc::Role;
  using Request = std::function<void(ipc::Connection&, ipc::Connection::Request)>;
  using Closed = std::function<void(const std::string& violation)>;
  // gone: called once for each client, when nothing more is read from it or sent to it, and before its own `closed`.
  Clients(const Host& host, Request request, std::function<void(std::uint64_t number, Role role)> gone)
      : host_(host), request_(std::move(request)), gone_(std::move(gone)) {}

  // Its number. `closed` comes from the loop, never from inside this call.
  std::uint64_t serve(Fd socket, Role role, Closed closed);
  // Ends a connection, if it is still there.
  void drop(std::uint64_t number, const std::string& violation = "");
  [[nodiscard]] ipc::Connection* find(std::uint64_t number) const;
  [[nodiscard]] Role role(std::uint64_t number) const { return clients_.at(number).role; }  // of one that is there
  // owner: the client that a session was made for; 0: none.
  [[nodiscard]] bool sees(std::uint64_t number, std::uint64_t owner) const {
    return owner != 0 && (owner == number || role(number) == Role::operator_);
  }
  void tell_all(const json::Value& event) const;
  // To a request (0: none) of a client that may have gone.
  void answer(std::uint64_t number, std::int64_t request, json::Value fields, std::vector<Fd> fds = {}) const;
  void refuse(std::uint64_t number, std::int64_t request, const Error& error, const std::string& step) const;
  // Whether this one was recorded; else it is counted, or its client has gone.
  bool record_refused(std::uint64_t number, const json::Value& refused);

 private:
  struct Client {
    std::unique_ptr<ipc::Connection> connection;
    Role role = Role::agent;
    Closed closed;
    Refusals refusals;
  };
  void record_dropped(Refusals& refusals) const;

  const Host& host_;
  const Request request_;
  const std::function<void(std::uint64_t, Role)> gone_;
  std::map<std::uint64_t, Client> clients_;
};

}  // namespace caisson::session
