#include "agent/http/server.h"

#include <array>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include "agent/http/connection.h"
#include "agent/http/log.h"

namespace caisson::http {
namespace {

using asio::ip::tcp;

constexpr std::size_t kMaxTurnedAway = 64;

task<void> read_away(tcp::socket* socket) {
  std::array<char, 4096> buffer{};
  for (int reads = 0; reads < 64; ++reads) {
    auto [error, size] = co_await socket->async_read_some(asio::buffer(buffer), as_values);
    if (error) break;
  }
  co_return Status{};
}

// Without waiting for the client to read: a full server must not spend time on it. What the client has sent is read for
// a moment, because closing with unread input resets the connection, and the reset can overtake the answer.
task<void> turn_away(std::shared_ptr<Server::State> state, tcp::socket socket) {
  static constexpr std::string_view kAnswer =
      "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
      "content-length: 68\r\n\r\n"
      R"({"success":false,"message":"Too many open connections","data":null})"
      "\n";
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kAnswer), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  if (state->turned_away >= kMaxTurnedAway) co_return Status{};
  ++state->turned_away;
  task<void> rest = read_away(&socket);
  (void)co_await with_timeout(std::move(rest), std::chrono::milliseconds(500), "client that is turned away");
  --state->turned_away;
  co_return Status{};
}

task<void> accept_loop(std::shared_ptr<Server::State> state) {
  while (!state->stopping) {
    auto [error, socket] = co_await state->acceptor.async_accept(as_values);
    if (error == asio::error::operation_aborted) break;
    if (error) {
      // Out of descriptors or memory: waiting lets connections end, spinning would not.
      log::warn("accept: " + error.message());
      co_await sleep_for(std::chrono::milliseconds(100));
    } else if (!state->admits(address_of(socket))) {
      spawn(state->io.get_executor(), "turn away", turn_away(state, std::move(socket)));
    } else {
      spawn(state->io.get_executor(), "connection", run_connection(state, std::move(socket)));
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

Server::Server(asio::io_context& io, Application& application, Limits limits)
    : state_(std::make_shared<State>(io, application, limits)) {}

Server::~Server() {
  boost::system::error_code ignored;
  state_->stopping = true;
  state_->acceptor.close(ignored);
}

Result<unsigned short> Server::listen(const std::string& address, unsigned short port) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  if (error) return caisson::fail(Code::invalid_argument, "listen address " + quote(address) + " is not an IP address");
  TRY(open_acceptor(state_->acceptor, tcp::endpoint(parsed, port)));
  return state_->acceptor.local_endpoint().port();
}

void Server::start() { spawn(state_->io.get_executor(), "accept", accept_loop(state_)); }

std::size_t Server::connections() const { return state_->open.size(); }

asio::awaitable<void> Server::stop(std::chrono::milliseconds grace) {
  boost::system::error_code ignored;
  state_->stopping = true;
  state_->acceptor.close(ignored);
  const auto deadline = std::chrono::steady_clock::now() + grace;
  for (Connection* connection : std::vector(state_->open)) stop_connection(*connection, false);
  while (!state_->open.empty() && std::chrono::steady_clock::now() < deadline) co_await sleep_for(std::chrono::milliseconds(10));
  for (Connection* connection : std::vector(state_->open)) stop_connection(*connection, true);
}

}  // namespace caisson::http
