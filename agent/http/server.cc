#include "agent/http/server.h"

#include <algorithm>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include "agent/http/connection.h"
#include "agent/http/log.h"

namespace caisson::http {
namespace {

using asio::ip::tcp;

task<void> accept_loop(std::shared_ptr<Server::State> state, std::shared_ptr<Listener> listener) {
  const std::string& inside = listener->inside;
  while (!state->stopping && listener->acceptor.is_open()) {
    auto [error, socket] = co_await listener->acceptor.async_accept(as_values);
    if (error == asio::error::operation_aborted) break;
    if (error) {
      // Out of descriptors or memory. Waiting lets connections end; retrying at once would not.
      log::warn("accept: " + error.message());
      co_await sleep_for(std::chrono::milliseconds(100));
    } else {
      const Place place = state->place_for(address_of(socket, inside));
      TlsContext tls = state->tls && inside.empty() ? state->tls() : nullptr;
      spawn(state->io.get_executor(), "connection", run_connection(state, std::move(socket), std::move(tls), place, inside));
    }
  }
  co_return Status{};
}

Status open_acceptor(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  boost::system::error_code error;
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // One socket for both families when the address is "::".
  if (!error && at.protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) return {};
  const std::string where = at.address().to_string() + " port " + std::to_string(at.port());
  if (error == asio::error::address_in_use)
    return caisson::fail(Code::already_exists, "listen on " + where + ": the port is taken by another program");
  return asio_error("listen on " + where, error);
}

}  // namespace

Server::Server(asio::io_context& io, Application& application, Limits limits, Front front)
    : state_(std::make_shared<State>(io, application, limits, std::move(front))) {}

Server::~Server() {
  boost::system::error_code ignored;
  state_->stopping = true;
  state_->listener->acceptor.close(ignored);
  state_->recheck.cancel();
}

Result<unsigned short> Server::listen(const std::string& address, unsigned short port) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  if (error) return caisson::fail(Code::invalid_argument, "listen address " + quote(address) + " is not an IP address");
  TRY(open_acceptor(state_->listener->acceptor, tcp::endpoint(parsed, port)));
  return state_->listener->acceptor.local_endpoint().port();
}

void Server::start() {
  spawn(state_->io.get_executor(), "accept", accept_loop(state_, state_->listener));
  spawn(state_->io.get_executor(), "recheck", recheck_credentials(state_));
}

Result<std::shared_ptr<void>> Server::serve_inside(Fd listener, std::string workspace) {
  auto made = std::make_shared<Listener>(tcp::acceptor(state_->io), std::move(workspace));
  boost::system::error_code error;
  made->acceptor.assign(tcp::v4(), listener.get(), error);
  if (error) return asio_error("take a listening socket", error);
  (void)listener.release();
  std::erase_if(state_->in_workspaces, [](const auto& one) { return one.expired(); });
  state_->in_workspaces.push_back(made);
  spawn(state_->io.get_executor(), "accept", accept_loop(state_, made));
  // The coroutine holds the listener, too; closing it ends that.
  return std::shared_ptr<void>(made.get(), [made](void*) {
    boost::system::error_code ignored;
    made->acceptor.close(ignored);
  });
}

std::size_t Server::connections() const { return state_->open.size(); }

void Server::flush_log() { state_->access_log.flush(); }
void Server::note_call(const CallLine& line) { state_->access_log.add(line); }

Server::Load Server::load() const {
  return {.held_bytes = state_->budget->used(),
          .held_limit = state_->budget->total(),
          .lane_waiting = state_->lane->waiting(),
          .lane_turns = state_->lane->turns()};
}

void Server::drain() { state_->draining = true; }

asio::awaitable<void> Server::stop(std::chrono::milliseconds grace) {
  boost::system::error_code ignored;
  state_->stopping = state_->draining = true;
  state_->listener->acceptor.close(ignored);
  for (const auto& one : state_->in_workspaces)
    if (const auto there = one.lock()) there->acceptor.close(ignored);
  state_->recheck.cancel();
  const auto deadline = std::chrono::steady_clock::now() + grace;
  for (Connection* connection : std::vector(state_->open)) stop_connection(*connection, false);
  // The handler of an ended stream may still wait for its next event; nobody waits for that.
  while (std::ranges::any_of(state_->open, is_open) && std::chrono::steady_clock::now() < deadline)
    co_await sleep_for(std::chrono::milliseconds(10));
  for (Connection* connection : std::vector(state_->open)) stop_connection(*connection, true);
}

}  // namespace caisson::http
