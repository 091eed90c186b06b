// One client connection: requests in order, one at a time (pipelined ones wait in the buffer), each with its limits.
// Private to agent/http.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/server.h"

namespace caisson::http {

class Connection;

struct Server::State {
  State(asio::io_context& io_, Application& application_, Limits limits_)
      : io(io_), application(application_), limits(limits_), acceptor(io_) {}
  asio::io_context& io;
  Application& application;
  Limits limits;
  asio::ip::tcp::acceptor acceptor;
  std::vector<Connection*> open;  // each removes itself when it ends
  std::size_t turned_away = 0;    // refused clients that may still be reading why
  bool stopping = false;
};

// Runs until the connection ends. Holds the state, so that a Server may go first.
[[nodiscard]] task<void> run_connection(std::shared_ptr<Server::State> state, asio::ip::tcp::socket socket);

// For shutdown. An idle connection is closed, a busy one told to close after its response; force closes any.
void stop_connection(Connection& connection, bool force);

}  // namespace caisson::http
