// bare PORT BYTES: the smallest server that Beast can be, one thread and one io_context, as coroutines: a head is read, and an
// answer of that many bytes is written. scripts/bench front measures ours beside it, and asks it through the preview proxy and
// nginx.
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> serve(tcp::socket socket, std::string_view body) {
  beast::tcp_stream stream(std::move(socket));
  stream.socket().set_option(tcp::no_delay(true));
  beast::flat_buffer buffer;
  while (true) {
    beast::http::request<beast::http::empty_body> request;
    auto [error, size] = co_await beast::http::async_read(stream, buffer, request, as_values);
    if (error) co_return;
    using Text = beast::http::span_body<const char>;
    beast::http::response<Text> response(beast::http::status::ok, request.version());
    response.set(beast::http::field::content_type, "application/json");
    response.keep_alive(request.keep_alive());
    response.body() = {body.data(), body.size()};
    response.prepare_payload();
    auto [failed, written] = co_await beast::http::async_write(stream, response, as_values);
    if (failed || !request.keep_alive()) co_return;
  }
}

asio::awaitable<void> accept(tcp::acceptor acceptor, std::string_view body) {
  while (true) {
    auto [error, socket] = co_await acceptor.async_accept(as_values);
    if (error) co_return;
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), body), asio::detached);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  std::signal(SIGPIPE, SIG_IGN);
  const std::string body(static_cast<std::size_t>(std::atoll(argv[2])), 'x');
  asio::io_context io(1);
  const auto port = static_cast<unsigned short>(std::atoi(argv[1]));
  tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"), port});
  asio::co_spawn(io, accept(std::move(acceptor), body), asio::detached);
  io.run();
}
