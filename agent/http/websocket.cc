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

// Beast calls these when the closing handshake is over. No reply of TLS is waited for, only the end of the socket, as without
// TLS.
void teardown(boost::beast::role_type role, TlsStream& stream, boost::beast::error_code& error) {
  stream.finish();
  boost::beast::websocket::teardown(role, stream.next_layer(), error);
}

template <class Handler>
void async_teardown(boost::beast::role_type role, TlsStream& stream, Handler&& handler) {
  stream.finish();
  boost::beast::websocket::async_teardown(role, stream.next_layer(), std::forward<Handler>(handler));
}

namespace over_beast {  // named, because GCC warns of coroutine frames with types of an anonymous namespace

namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;

constexpr std::size_t kPiece = 64 * 1024;

template <class Socket>
class BeastTransport final : public WebSocket::Transport, public std::enable_shared_from_this<BeastTransport<Socket>> {
 public:
  using Stream = websocket::stream<Socket, false>;  // no compression: less attack surface
  BeastTransport(Socket socket, const Limits& limits, Budget::Share in, Budget::Share out)
      : stream_(std::move(socket)),
        buffer_(limits.websocket_message + 1024),
        write_lock_(stream_.get_executor()),
        close_lock_(stream_.get_executor()),
        deadline_(stream_.get_executor()),
        message_due_(stream_.get_executor()),
        limits_(limits),
        in_(std::move(in)),
        out_(std::move(out)) {
    websocket::stream_base::timeout timeout{};
    timeout.handshake_timeout = limits.head_timeout;
    timeout.idle_timeout = limits.websocket_idle;  // Beast pings at half of it
    timeout.keep_alive_pings = true;
    stream_.set_option(timeout);
    stream_.read_message_max(limits.websocket_message);
    stream_.auto_fragment(false);
  }

  task<void> accept(std::string raw_head, std::string request_id) {
    beast::http::request_parser<beast::http::empty_body> parser;
    beast::error_code error;
    parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
    parser.put(asio::buffer(raw_head), error);
    if (error) co_return asio_error("read the upgrade request", error);
    const auto name_it = [&](websocket::response_type& response) { response.set("x-request-id", request_id); };
    stream_.set_option(websocket::stream_base::decorator(name_it));
    auto [accept_error] = co_await stream_.async_accept(parser.get(), as_values);
    if (accept_error) co_return asio_error("accept the websocket", accept_error);
    co_return Status{};
  }

  task<std::optional<std::string>> receive() override {
    CO_TRY_ASSIGN(std::optional<WebSocketMessage> message, co_await receive_message());
    if (!message) co_return std::nullopt;
    if (message->binary) {
      CO_TRY(co_await close(websocket::close_code::unknown_data, "text frames only"));
      co_return caisson::fail(Code::protocol, "binary websocket message");
    }
    co_return std::move(message->data);
  }

  task<std::optional<WebSocketMessage>> receive_message() override {
    boost::system::error_code error;
    bool begun = false;
    do {
      auto [ended, size] = co_await stream_.async_read_some(buffer_, kPiece, as_values);
      error = ended;
      // A message that has begun is held until it is complete, so a client that stops in the middle of one is cut like a client
      // that does not read.
      if (buffer_.size() > 0 && !std::exchange(begun, true)) start_deadline(message_due_, limits_.body_timeout);
      if (!hold(in_, buffer_.capacity())) co_return co_await refuse_for_room();
    } while (!error && !stream_.is_message_done());
    message_due_.cancel();
    if (error == websocket::error::closed) co_return std::nullopt;
    if (error == websocket::error::message_too_big) co_return caisson::fail(Code::protocol, "websocket message is too big");
    if (error == beast::error::timeout) co_return caisson::fail(Code::timeout, "websocket client does not answer");
    if (error) co_return asio_error("read from the websocket", error);
    WebSocketMessage message;
    message.data = beast::buffers_to_string(buffer_.data());
    message.binary = stream_.got_binary();
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > 64 * 1024) buffer_.shrink_to_fit();
    (void)hold(in_, buffer_.capacity());
    co_return message;
  }

  task<std::optional<WebSocketPiece>> receive_piece(std::uint64_t most) override {
    stream_.read_message_max(static_cast<std::size_t>(most));
    WebSocketPiece piece;
    piece.data.resize(kPiece);
    auto [error, size] = co_await stream_.async_read_some(asio::buffer(piece.data), as_values);
    if (error == websocket::error::closed) co_return std::nullopt;
    if (error == websocket::error::message_too_big) co_return caisson::fail(Code::protocol, "websocket message is too big");
    if (error == beast::error::timeout) co_return caisson::fail(Code::timeout, "websocket client does not answer");
    if (error) co_return asio_error("read from the websocket", error);
    piece.data.resize(size);
    piece.binary = stream_.got_binary();
    piece.last = stream_.is_message_done();
    co_return piece;
  }

  task<void> send(std::string text) override {
    WebSocketMessage message;
    message.data = std::move(text);
    co_return co_await send_message(std::move(message));
  }

  task<void> send_message(WebSocketMessage message) override {
    const AsyncLock::Held held = co_await write_lock_.acquire();
    if (!hold(out_, message.data.capacity())) co_return caisson::fail(Code::limit, "no room for a websocket message");
    start_deadline(deadline_, limits_.write_timeout);
    stream_.binary(message.binary);
    const asio::const_buffer bytes = asio::buffer(message.data);
    auto [error, size] = co_await stream_.async_write(bytes, as_values);
    deadline_.cancel();
    out_.release();
    if (error) co_return asio_error("write to the websocket", error);
    co_return Status{};
  }

  task<void> send_piece(WebSocketPiece piece) override {
    start_deadline(deadline_, limits_.write_timeout);
    stream_.binary(piece.binary);
    const asio::const_buffer bytes = asio::buffer(piece.data);
    auto [error, size] = co_await stream_.async_write_some(piece.last, bytes, as_values);
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
    beast::get_lowest_layer(stream_).close(ignored);
  }

 private:
  [[nodiscard]] bool hold(Budget::Share& share, std::size_t bytes) const {
    return share.resize(bytes > limits_.uncounted_bytes ? bytes : 0) == Room::granted;
  }
  task<std::optional<WebSocketMessage>> refuse_for_room() {
    CO_TRY(co_await close(websocket::close_code::try_again_later, "too many bytes are under way"));
    co_return caisson::fail(Code::limit, "no room for a websocket message");
  }
  // Beast's idle timeout sees only what the client sends. A client that stops reading is cut here.
  void start_deadline(asio::steady_timer& timer, std::chrono::milliseconds limit) {
    timer.expires_after(limit);
    timer.async_wait([weak = this->weak_from_this()](const boost::system::error_code& error) {
      if (const auto self = weak.lock(); self && !error) self->abort();
    });
  }

  Stream stream_;
  beast::flat_buffer buffer_;
  AsyncLock write_lock_, close_lock_;
  asio::steady_timer deadline_, message_due_;
  Limits limits_;
  Budget::Share in_, out_;
};

}  // namespace over_beast

namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
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

namespace {

template <class Socket>
task<std::shared_ptr<WebSocket::Transport>> accept_on(Socket socket, std::string raw_head, std::string request_id, Limits limits,
                                                      Budget::Share in, Budget::Share out) {
  auto transport = std::make_shared<over_beast::BeastTransport<Socket>>(std::move(socket), limits, std::move(in), std::move(out));
  CO_TRY(co_await transport->accept(std::move(raw_head), std::move(request_id)));
  co_return transport;
}

}  // namespace

task<std::shared_ptr<WebSocket::Transport>> accept_websocket(asio::ip::tcp::socket socket, std::string raw_head,
                                                             std::string request_id, Limits limits, Budget::Share in,
                                                             Budget::Share out) {
  return accept_on(std::move(socket), std::move(raw_head), std::move(request_id), limits, std::move(in), std::move(out));
}

task<std::shared_ptr<WebSocket::Transport>> accept_websocket(TlsStream stream, std::string raw_head, std::string request_id,
                                                             Limits limits, Budget::Share in, Budget::Share out) {
  return accept_on(std::move(stream), std::move(raw_head), std::move(request_id), limits, std::move(in), std::move(out));
}

}  // namespace caisson::http
