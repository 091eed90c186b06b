// ClientStream: a client's connection, plain or TLS, with a deadline for what is read and written. Private to agent/http.
#pragma once

#include <optional>

#include <boost/beast/core/tcp_stream.hpp>

#include "agent/http/tls_stream.h"

namespace caisson::http {

class ClientStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;
  using tcp = asio::ip::tcp;

  // Without a context it is plain.
  ClientStream(tcp::socket socket, const TlsContext& context) : plain_(socket.get_executor()) {
    if (context) tls_.emplace(std::move(socket), context);
    else plain_.socket() = std::move(socket);
  }
  [[nodiscard]] executor_type get_executor() { return plain_.get_executor(); }
  [[nodiscard]] tcp::socket& socket() { return tls_ ? tls_->next_layer() : plain_.socket(); }
  [[nodiscard]] bool is_open() const { return tls_ ? tls_->next_layer().is_open() : plain_.socket().is_open(); }
  [[nodiscard]] TlsStream* tls() { return tls_ ? &*tls_ : nullptr; }
  [[nodiscard]] tcp::socket release_plain() { return plain_.release_socket(); }

  void expires_after(std::chrono::milliseconds time) {
    if (tls_) tls_->expires_after(time);
    else plain_.expires_after(time);
  }
  void expires_never() {
    if (tls_) tls_->expires_after(std::chrono::steady_clock::duration::max());
    else plain_.expires_never();
  }
  template <class Buffers, class Token>
  TlsStream::Return<Token> async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return plain_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  TlsStream::Return<Token> async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return plain_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  boost::beast::tcp_stream plain_;
  std::optional<TlsStream> tls_;
};

}  // namespace caisson::http
