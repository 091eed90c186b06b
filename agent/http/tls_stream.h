// TlsStream: the server's end of a TLS connection, as an AsyncStream of Asio's. OpenSSL reads and writes the socket itself, so
// nothing is copied on the way, and an idle connection holds no buffers. A handle: copies are the same connection. At most one
// read and one write at a time.
#pragma once

#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "agent/http/coro.h"
#include "agent/http/tls_context.h"

namespace caisson::http {

// What an attempt came to: it is over, or the socket must be waited for.
struct TlsStep {
  enum class Need { nothing, input, output } need = Need::nothing;
  boost::system::error_code error = {};
  std::size_t bytes = 0;
};

class TlsWire : public std::enable_shared_from_this<TlsWire> {
 public:
  using tcp = asio::ip::tcp;
  static constexpr std::size_t kRecord = 16 * 1024;

  TlsWire(tcp::socket socket, const TlsContext& context);
  TlsWire(const TlsWire&) = delete;
  TlsWire& operator=(const TlsWire&) = delete;

  [[nodiscard]] TlsStep accept();
  [[nodiscard]] TlsStep read(asio::mutable_buffer into);
  [[nodiscard]] TlsStep write(asio::const_buffer from);
  // Says that nothing more will be written, if that needs no waiting.
  void finish();
  void expires_after(std::chrono::steady_clock::duration time);
  // Of the client's bytes, before OpenSSL has them.
  [[nodiscard]] bool acceptable(std::string_view bytes);

  tcp::socket socket;
  boost::system::error_code failure;  // of the socket
  bool plain = false;                 // the client did not speak TLS, but probably HTTP
  bool established = false;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  [[nodiscard]] TlsStep step(int result, std::size_t done);
  void watch();

  std::unique_ptr<SSL, Free> ssl_;
  asio::steady_timer timer_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::optional<std::chrono::steady_clock::time_point> watched_;
  std::size_t received_ = 0;
};

// Attempts until no more waiting is needed. It never completes inside the call that starts it.
template <class Attempt>
struct TlsOperation {
  std::shared_ptr<TlsWire> wire;
  Attempt attempt;
  TlsStep step = {};
  bool waited = false, over = false;

  template <class Self>
  void operator()(Self& self, boost::system::error_code error = {}) {
    if (!over) {
      if (error) step = {.error = error};
      else step = attempt(*wire);
    }
    asio::ip::tcp::socket& socket = wire->socket;
    over = step.need == TlsStep::Need::nothing;
    if (!over) {
      const auto until = step.need == TlsStep::Need::input ? asio::ip::tcp::socket::wait_read : asio::ip::tcp::socket::wait_write;
      waited = true;
      socket.async_wait(until, std::move(self));
    } else if (!std::exchange(waited, true)) {
      asio::post(socket.get_executor(), std::move(self));
    } else {
      self.complete(step.error, step.bytes);
    }
  }
};

struct TlsAccept {
  TlsStep operator()(TlsWire& wire) const { return wire.accept(); }
};

struct TlsRead {
  asio::mutable_buffer into;
  TlsStep operator()(TlsWire& wire) const { return wire.read(into); }
};

// Small buffers leave in one record. A repeated attempt finds the same bytes, as OpenSSL requires.
template <class Buffers>
struct TlsWrite {
  Buffers buffers;
  TlsStep operator()(TlsWire& wire) const {
    const auto end = asio::buffer_sequence_end(buffers);
    const auto first = std::find_if(asio::buffer_sequence_begin(buffers), end, [](asio::const_buffer b) { return b.size() > 0; });
    if (first == end) return {};
    const asio::const_buffer whole = *first;
    if (whole.size() >= TlsWire::kRecord || std::next(first) == end) return wire.write(whole);
    std::array<char, TlsWire::kRecord> record;
    const std::size_t size = asio::buffer_copy(asio::buffer(record), buffers);
    return wire.write(asio::buffer(record.data(), size));
  }
};

class TlsStream {
 public:
  using executor_type = asio::ip::tcp::socket::executor_type;
  using next_layer_type = asio::ip::tcp::socket;
  using Signature = void(boost::system::error_code, std::size_t);
  template <class Token>
  using Return = typename asio::async_result<std::decay_t<Token>, Signature>::return_type;

  TlsStream(asio::ip::tcp::socket socket, const TlsContext& context)
      : wire_(std::make_shared<TlsWire>(std::move(socket), context)) {}

  [[nodiscard]] executor_type get_executor() const { return wire_->socket.get_executor(); }
  [[nodiscard]] next_layer_type& next_layer() const { return wire_->socket; }
  // After a handshake that failed: whether the client seems to have sent a request without TLS.
  [[nodiscard]] bool is_plain() const { return wire_->plain; }

  [[nodiscard]] task<void> handshake() const;
  // The connection is closed when this time has passed, unless another one is set before.
  void expires_after(std::chrono::steady_clock::duration time) const { wire_->expires_after(time); }
  // What can be written at once, while no other write is under way.
  void try_write(std::string_view bytes) const {
    if (wire_->established) (void)wire_->write(asio::buffer(bytes));
  }
  void finish() const { wire_->finish(); }

  template <class Buffers, class Token>
  Return<Token> async_read_some(const Buffers& buffers, Token&& token) {
    const auto end = asio::buffer_sequence_end(buffers);
    const auto first =
        std::find_if(asio::buffer_sequence_begin(buffers), end, [](asio::mutable_buffer b) { return b.size() > 0; });
    TlsRead attempt{.into = first == end ? asio::mutable_buffer() : asio::mutable_buffer(*first)};
    return start(attempt, token);
  }
  template <class Buffers, class Token>
  Return<Token> async_write_some(const Buffers& buffers, Token&& token) {
    return start(TlsWrite<Buffers>{.buffers = buffers}, token);
  }

 private:
  template <class Attempt, class Token>
  Return<Token> start(Attempt attempt, Token& token) const {
    return asio::async_compose<Token, Signature>(TlsOperation<Attempt>{.wire = wire_, .attempt = std::move(attempt)}, token,
                                                 wire_->socket);
  }
  std::shared_ptr<TlsWire> wire_;
};

}  // namespace caisson::http
