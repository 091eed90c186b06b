// One client connection: requests in order, one at a time (pipelined ones wait in the buffer), each with its limits.
// Private to agent/http.
#pragma once

#include <map>

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/budget.h"
#include "agent/http/lane.h"
#include "agent/http/server.h"

namespace caisson::http {

class Connection;

struct Server::State : std::enable_shared_from_this<Server::State> {
  State(asio::io_context& io_, Application& application_, Limits limits_)
      : io(io_),
        application(application_),
        limits(limits_),
        acceptor(io_),
        budget(std::make_shared<Budget>(limits_.held_bytes)),
        lane(std::make_shared<Lane>(io_.get_executor())) {}

  // Who pays for what is held. Room comes back from connections that stand still.
  [[nodiscard]] Budget::PayerPtr client(const std::string& address);
  [[nodiscard]] Budget::PayerPtr workspace(const std::string& name);
  // Whether one more connection from there may be served: one that stands still is ended for it where the bounds are reached, of
  // the client that has most.
  [[nodiscard]] bool admits(const std::string& address);

  asio::io_context& io;
  Application& application;
  Limits limits;
  asio::ip::tcp::acceptor acceptor;
  std::shared_ptr<Budget> budget;
  std::shared_ptr<Lane> lane;
  std::vector<Connection*> open;  // each removes itself when it ends
  std::size_t turned_away = 0;    // refused clients that may still be reading why
  bool stopping = false;

 private:
  using Payers = std::map<std::string, std::weak_ptr<Budget::Payer>>;
  using PaidBy = const Budget::Payer* (Connection::*)() const;
  [[nodiscard]] Budget::PayerPtr payer(Payers& known, PaidBy of, const std::string& name, std::size_t part);
  // Of that payer's connections, those of clients that hold so much, the slowest of the client that holds most, if it is slow.
  // holding: among those that hold something.
  [[nodiscard]] Connection* slowest(PaidBy of, const Budget::Payer* payer, std::size_t least, bool holding) const;
  Payers clients_, workspaces_;
};

// Without the port; empty when it is gone already.
[[nodiscard]] std::string address_of(const asio::ip::tcp::socket& socket);

// Runs until the connection ends. Holds the state, so that a Server may go first.
[[nodiscard]] task<void> run_connection(std::shared_ptr<Server::State> state, asio::ip::tcp::socket socket);

// For shutdown. An idle connection is closed, a busy one told to close after its response; force closes any.
void stop_connection(Connection& connection, bool force);

}  // namespace caisson::http
