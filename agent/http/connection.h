// One client connection: requests in order, one at a time (pipelined ones wait in the buffer), each with its limits.
// Private to agent/http.
#pragma once

#include <map>

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/access_log.h"
#include "agent/http/budget.h"
#include "agent/http/gzip.h"
#include "agent/http/lane.h"
#include "agent/http/places.h"
#include "agent/http/server.h"

namespace caisson::http {

class Connection;

// What a connection is for.
enum class Place { any, probes };

struct Listener {
  asio::ip::tcp::acceptor acceptor;
  std::string inside = {};  // the workspace in whose network it is; "": it is the server's own
};

struct Server::State : std::enable_shared_from_this<Server::State> {
  State(asio::io_context& io_, Application& application_, Limits limits_, Front front)
      : io(io_),
        application(application_),
        limits(limits_),
        listener(std::make_shared<Listener>(asio::ip::tcp::acceptor(io_))),
        recheck(io_),
        budget(std::make_shared<Budget>(limits_.held_bytes)),
        lane(std::make_shared<Lane>(io_.get_executor())),
        proxies(std::move(front.proxies)),
        access_log(io_.get_executor(), front.access_log_fd),
        tls(std::move(front.tls)),
        tracer(front.tracer) {}

  // The payers of what the connections hold. Room comes back from connections that stand still.
  [[nodiscard]] Budget::PayerPtr client(const std::string& address);
  [[nodiscard]] Budget::PayerPtr workspace(const std::string& name);
  // The place of one more connection from this address. At the bounds, a connection that stands still is ended for it, one of the
  // client with the most connections. If none stands still, it is one for probes.
  [[nodiscard]] Place place_for(const std::string& address);
  // Before one more refused client is waited for: at the bound, the oldest of these is ended.
  void limit_lingering() const;

  asio::io_context& io;
  Application& application;
  Limits limits;
  const std::shared_ptr<Listener> listener;
  std::vector<std::weak_ptr<Listener>> in_workspaces;
  asio::steady_timer recheck;  // cancelled when the server stops
  std::shared_ptr<Budget> budget;
  std::shared_ptr<Lane> lane;
  const Networks proxies;
  AccessLog access_log;
  const std::function<TlsContext()> tls;
  traces::Tracer* const tracer;
  Gzip gzip;                      // for answers that are compressed at once
  std::vector<Connection*> open;  // each removes itself when it ends
  Places places;                  // of the requests under way
  std::size_t lingering = 0;      // refused clients that may still be reading why
  bool draining = false;          // answers end their connections
  bool stopping = false;          // and nothing is accepted any more

 private:
  using Payers = std::map<std::string, std::weak_ptr<Budget::Payer>>;
  [[nodiscard]] bool admits(const std::string& address);
  void limit_probes() const;
  using PaidBy = const Budget::Payer* (Connection::*)() const;
  [[nodiscard]] Budget::PayerPtr payer(Payers& known, PaidBy of, const std::string& name, std::size_t part);
  // The connection of this payer that gives way: the slowest one of the client that holds most, if it is slow. Only clients that
  // hold at least this much count. holding: only connections that hold bytes count.
  [[nodiscard]] Connection* slowest(PaidBy of, const Budget::Payer* payer, std::size_t least, bool holding) const;
  Payers clients_, workspaces_;
};

// The peer's address without the port; empty when the peer is gone already. Inside a workspace: "workspace:NAME", for all
// addresses there are its own.
[[nodiscard]] std::string address_of(const asio::ip::tcp::socket& socket, const std::string& inside = "");

// Runs until the connection ends. Holds the state, so that the Server may be destroyed first.
// tls: null, it is plain.
[[nodiscard]] task<void> run_connection(std::shared_ptr<Server::State> state, asio::ip::tcp::socket socket, TlsContext tls,
                                        Place place, std::string inside);

// For shutdown. An idle connection is closed, a WebSocket and an endless event stream are ended, a busy connection is closed
// after its response; force closes any, event streams with the mark of their end.
void stop_connection(Connection& connection, bool force);
// Every Limits::recheck, until the server stops: ends what is open although its credential is not good any more. One timer for
// all, so that short requests pay nothing.
[[nodiscard]] task<void> recheck_credentials(std::shared_ptr<Server::State> state);
[[nodiscard]] bool is_open(const Connection* connection);

}  // namespace caisson::http
