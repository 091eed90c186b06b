#include "agent/proxy/tunnel.h"

#include <variant>

#include <boost/asio/buffer.hpp>

#include "agent/http/tls_stream.h"

namespace caisson::proxy {

using asio::ip::tcp;
using TunnelClock = std::chrono::steady_clock;

// Not in the anonymous namespace: it is part of the frame of join(), which has external linkage.
struct Tunnel {
  tcp::socket* client;
  tcp::socket* app;
  TunnelClock::time_point moved = TunnelClock::now();
  std::uint64_t to_client = 0;  // bytes
  void end() {
    boost::system::error_code ignored;
    client->close(ignored);
    app->close(ignored);
  }
};

namespace {

constexpr std::size_t kTunnelPiece = 32 * 1024;
constexpr std::chrono::milliseconds kTunnelLook{500};

tcp::socket& socket_of(tcp::socket* socket) { return *socket; }
tcp::socket& socket_of(http::TlsStream* stream) { return stream->next_layer(); }

void end_output(tcp::socket* socket) {
  boost::system::error_code ignored;
  socket->shutdown(tcp::socket::shutdown_send, ignored);
}

void end_output(http::TlsStream* stream) {
  stream->finish();
  end_output(&stream->next_layer());
}

template <class To>
task<void> write_whole(Tunnel* tunnel, To* to, std::string_view bytes) {
  while (!bytes.empty()) {
    auto [error, size] = co_await to->async_write_some(asio::buffer(bytes), as_values);
    if (error) co_return asio_error("write", error);
    tunnel->moved = TunnelClock::now();
    if (&socket_of(to) == tunnel->client) tunnel->to_client += size;
    bytes.remove_prefix(size);
  }
  co_return Status{};
}

template <class From, class To>
task<void> carry(Tunnel* tunnel, From* from, To* to, std::string piece) {
  CO_TRY(co_await write_whole(tunnel, to, piece));
  piece.resize(kTunnelPiece);
  while (true) {
    auto [error, size] = co_await from->async_read_some(asio::buffer(piece), as_values);
    if (error == asio::error::eof) break;
    if (error) co_return asio_error("read", error);
    tunnel->moved = TunnelClock::now();
    CO_TRY(co_await write_whole(tunnel, to, std::string_view(piece).substr(0, size)));
  }
  end_output(to);
  co_return Status{};
}

// A direction that fails ends the other.
template <class From, class To>
asio::awaitable<void> carry_or_end(Tunnel* tunnel, From* from, To* to, std::string piece) {
  const Status carried = co_await carry(tunnel, from, to, std::move(piece));
  if (!carried) tunnel->end();
}

asio::awaitable<void> await_silence(Tunnel* tunnel, std::chrono::milliseconds silence) {
  while (TunnelClock::now() - tunnel->moved < silence) co_await sleep_for(kTunnelLook);
}

template <class Client>
task<std::uint64_t> join_with(Client* client, tcp::socket* app, std::string to_client, std::string to_app,
                              std::chrono::milliseconds silence) {
  using asio::experimental::awaitable_operators::operator&&;
  using asio::experimental::awaitable_operators::operator||;
  Tunnel tunnel{.client = &socket_of(client), .app = app};
  auto down = carry_or_end(&tunnel, app, client, std::move(to_client));
  auto up = carry_or_end(&tunnel, client, app, std::move(to_app));
  auto both = std::move(down) && std::move(up);
  auto either = std::move(both) || await_silence(&tunnel, silence);
  (void)co_await std::move(either);
  tunnel.end();
  co_return tunnel.to_client;
}

}  // namespace

task<std::uint64_t> join(http::ClientSocket client, tcp::socket* app, std::string to_client, std::string to_app,
                         std::chrono::milliseconds silence) {
  if (auto* const* plain = std::get_if<tcp::socket*>(&client))
    return join_with(*plain, app, std::move(to_client), std::move(to_app), silence);
  return join_with(std::get<http::TlsStream*>(client), app, std::move(to_client), std::move(to_app), silence);
}

}  // namespace caisson::proxy
