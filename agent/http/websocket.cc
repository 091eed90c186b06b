#include "agent/http/websocket.h"

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "agent/http/async_lock.h"
#include "agent/http/websocket_accept.h"

namespace caisson::http {
namespace {

namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using Stream = websocket::stream<asio::ip::tcp::socket, false>;  // no compression: one attack surface less

class BeastTransport final : public WebSocket::Transport, public std::enable_shared_from_this<BeastTransport> {
 public:
  BeastTransport(asio::ip::tcp::socket socket, const Limits& limits)
      : stream_(std::move(socket)),
        write_lock_(stream_.get_executor()),
        close_lock_(stream_.get_executor()),
        deadline_(stream_.get_executor()),
        limits_(limits) {
    websocket::stream_base::timeout timeout{};
    timeout.handshake_timeout = limits.head_timeout;
    timeout.idle_timeout = limits.websocket_idle;  // Beast pings at half of it
    timeout.keep_alive_pings = true;
    stream_.set_option(timeout);
    stream_.read_message_max(kMaxWebSocketMessage);
    stream_.text(true);
    stream_.auto_fragment(false);
  }

  task<void> accept(std::string raw_head) {
    beast::http::request_parser<beast::http::empty_body> parser;
    beast::error_code error;
    parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
    parser.put(asio::buffer(raw_head), error);
    if (error) co_return asio_error("read the upgrade request", error);
    auto [accept_error] = co_await stream_.async_accept(parser.get(), as_values);
    if (accept_error) co_return asio_error("accept the websocket", accept_error);
    co_return Status{};
  }

  task<std::optional<std::string>> receive() override {
    auto [error, size] = co_await stream_.async_read(buffer_, as_values);
    if (error == websocket::error::closed) co_return std::nullopt;
    if (error == websocket::error::message_too_big) co_return caisson::fail(Code::protocol, "websocket message is too big");
    if (error == beast::error::timeout) co_return caisson::fail(Code::timeout, "websocket client does not answer");
    if (error) co_return asio_error("read from the websocket", error);
    if (!stream_.got_text()) {
      CO_TRY(co_await close(websocket::close_code::unknown_data, "text frames only"));
      co_return caisson::fail(Code::protocol, "binary websocket message");
    }
    std::string text = beast::buffers_to_string(buffer_.data());
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > 64 * 1024) buffer_.shrink_to_fit();
    co_return text;
  }

  task<void> send(std::string text) override {
    const AsyncLock::Held held = co_await write_lock_.acquire();
    start_deadline();
    const asio::const_buffer bytes = asio::buffer(text);
    auto [error, size] = co_await stream_.async_write(bytes, as_values);
    deadline_.cancel();
    if (error) co_return asio_error("write to the websocket", error);
    co_return Status{};
  }

  task<void> close(std::uint16_t code, std::string reason) override {
    const AsyncLock::Held held = co_await close_lock_.acquire();  // Beast allows one closing handshake at a time
    if (!stream_.is_open()) co_return Status{};
    reason.resize(std::min<std::size_t>(reason.size(), 120));
    const websocket::close_reason why(static_cast<websocket::close_code>(code), reason);
    auto [error] = co_await stream_.async_close(why, as_values);
    if (error && error != asio::error::operation_aborted) co_return asio_error("close the websocket", error);
    co_return Status{};
  }

  void abort() override {
    boost::system::error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  // Beast's idle timeout counts what the client sends; one that only stops reading is cut here.
  void start_deadline() {
    deadline_.expires_after(limits_.write_timeout);
    deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      if (const auto self = weak.lock(); self && !error) self->abort();
    });
  }

  Stream stream_;
  beast::flat_buffer buffer_{kMaxWebSocketMessage + 1024};
  AsyncLock write_lock_, close_lock_;
  asio::steady_timer deadline_;
  Limits limits_;
};

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

}  // namespace

bool is_websocket_upgrade(const Head& head) {
  const auto has = [&](std::string_view name, std::string_view wanted) {
    return std::ranges::any_of(head.headers, [&](const auto& h) {
      return h.first == name && (wanted.empty() || equals_ignoring_case(h.second, wanted));
    });
  };
  return head.method == "GET" && head.minor_version == 1 && head.body == BodyKind::none && has("upgrade", "websocket") &&
         has("sec-websocket-version", "13") && has("sec-websocket-key", "") && has("connection", "");
}

task<std::shared_ptr<WebSocket::Transport>> accept_websocket(asio::ip::tcp::socket socket, std::string raw_head, Limits limits) {
  auto transport = std::make_shared<BeastTransport>(std::move(socket), limits);
  CO_TRY(co_await transport->accept(std::move(raw_head)));
  co_return transport;
}

}  // namespace caisson::http
