// A connection to an app in a workspace, and what one request knows of its progress. The launcher made the socket in the
// workspace's network.
#pragma once

#include <chrono>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/coro.h"

namespace caisson::proxy {

using Clock = std::chrono::steady_clock;

inline constexpr std::size_t kPiece = 64 * 1024;

class Backend {
 public:
  // The socket does not block.
  explicit Backend(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  // Appends what has come to `bytes`; false: the app has ended its stream.
  [[nodiscard]] task<bool> read(std::string* bytes);
  [[nodiscard]] task<void> write(std::string bytes);
  void close();
  [[nodiscard]] asio::ip::tcp::socket& socket() { return socket_; }
  [[nodiscard]] asio::ip::tcp::socket release() { return std::move(socket_); }
  // For how long the app has been waited for without a byte in either direction.
  [[nodiscard]] Clock::duration silent(Clock::time_point now) const;

 private:
  void begin();
  void end();

  asio::ip::tcp::socket socket_;
  int waiting_ = 0;  // reads and writes under way
  Clock::time_point moved_ = Clock::now();
};

}  // namespace caisson::proxy
