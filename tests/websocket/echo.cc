// websocket-echo PORT: sends every message back, by the agent's own server and WebSocket. What a conformance suite talks to,
// directly or through the preview proxy. Listens on 127.0.0.1, serves anyone, ends by a signal.
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "agent/http/server.h"

namespace caisson {
namespace {

constexpr std::size_t kLargest = 17 * 1024 * 1024;  // the suite's largest message has 16 MiB

class Echo final : public http::Exchange {
 public:
  explicit Echo(http::Request head) : Exchange(std::move(head)) { websocket = true; }
  asio::awaitable<http::Response> serve(http::StreamWriter&) override { co_return http::error_response(426, "WebSocket only"); }
  task<void> converse(http::WebSocket socket) override {
    while (true) {
      CO_TRY_ASSIGN(std::optional<http::WebSocketMessage> message, co_await socket.receive_message());
      if (!message) co_return Status{};
      CO_TRY(co_await socket.send_message(std::move(*message)));
    }
  }
};

class EchoApplication final : public http::Application {
 public:
  asio::awaitable<http::Admission> admit(http::Request head) override { co_return std::make_unique<Echo>(std::move(head)); }
};

int run(std::string_view text) {
  unsigned short port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return 2;
  asio::io_context io(1);
  EchoApplication application;
  http::Limits limits;
  limits.websocket_message = kLargest;
  http::Server server(io, application, limits);
  const auto listening = server.listen("127.0.0.1", port);
  if (!listening) {
    std::fprintf(stderr, "%s\n", listening.error().text().c_str());
    return 1;
  }
  std::printf("%u\n", *listening);
  std::fflush(stdout);
  server.start();
  io.run();
  return 0;
}

}  // namespace
}  // namespace caisson

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: websocket-echo PORT\n");
    return 2;
  }
  return caisson::run(argv[1]);
}
