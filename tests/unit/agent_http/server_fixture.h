// A server on a loopback port of the kernel's choice, in a thread of its own, and a plain blocking client. The table of
// test routes stands in for the agent's own.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "agent/routes/app.h"
#include "agent/routes/status.h"
#include "launcher/common/base/fd.h"

namespace caisson {

// Blocking client socket. Every read gives up after 30 s, so that a broken server fails a test instead of hanging it.
class Client {
 public:
  explicit Client(unsigned short port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fd_.reset();
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // Reads until the text holds `mark` (all of it is returned), or the server closes or is silent.
  std::string read_until(std::string_view mark) {
    while (!pending_.contains(mark) && fill()) {
    }
    const std::size_t at = pending_.find(mark);
    const std::size_t end = at == std::string::npos ? pending_.size() : at + mark.size();
    std::string out = pending_.substr(0, end);
    pending_.erase(0, end);
    return out;
  }
  std::string read_exactly(std::size_t size) {
    while (pending_.size() < size && fill()) {
    }
    std::string out = pending_.substr(0, size);
    pending_.erase(0, out.size());
    return out;
  }
  // Everything up to the end of the connection; "TIMEOUT" appended when it does not end.
  std::string read_all() {
    while (fill()) {
    }
    return std::exchange(pending_, {}) + (ended_ ? "" : "TIMEOUT");
  }
  // One response with a content-length; head and body as sent.
  std::string response() {
    const std::string head = read_until("\r\n\r\n");
    const std::size_t at = head.find("content-length: ");
    return at == std::string::npos ? head : head + read_exactly(std::stoul(head.substr(at + 16)));
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

 private:
  bool fill() {
    pollfd ready{fd_.get(), POLLIN, 0};
    if (ended_ || ::poll(&ready, 1, 30'000) <= 0) return false;
    char buffer[65536];
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    ended_ = n <= 0;
    if (n > 0) pending_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }
  Fd fd_;
  std::string pending_;
  bool ended_ = false;
};

const std::vector<const routes::Route*>& test_table();  // server_test.cc
extern std::atomic<int> begun_slow, finished_slow;      // runs of /slow, and those that came to their end
extern std::atomic<bool> saw_client_gone;               // what the last one was told of its client

class ServerTest : public testing::Test {
 protected:
  ServerTest() { settings_.auth.api_key = "secret"; }
  ~ServerTest() override { finish(); }

  void start(http::Limits limits = {}) {
    app_ = std::make_unique<routes::App>(services_, settings_, test_table());
    server_ = std::make_unique<http::Server>(io_, *app_, limits);
    services_.status = &status_;
    auto port = server_->listen("127.0.0.1", 0);
    ASSERT_TRUE(port) << port.error().text();
    port_ = *port;
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  // Runs f on the server's thread.
  template <class F>
  auto on_thread(F f) {
    std::promise<decltype(f())> promise;
    asio::post(io_, [&] { promise.set_value(f()); });
    return promise.get_future().get();
  }
  void finish(std::chrono::milliseconds grace = std::chrono::milliseconds(0)) {
    if (!thread_.joinable()) return;
    asio::co_spawn(io_, server_->stop(grace), [](const std::exception_ptr&) {});
    for (int i = 0; i < 500 && on_thread([this] { return server_->connections(); }) > 0; ++i) usleep(10'000);
    io_.stop();
    thread_.join();
  }
  // Until a further run of /slow has begun.
  static void await_slow(int before) {
    for (int i = 0; i < 3000 && begun_slow == before; ++i) usleep(10'000);
    ASSERT_NE(begun_slow, before);
  }
  std::string once(std::string_view request) {
    Client client(port_);
    client.send(request);
    return client.response();
  }
  static std::string get(std::string_view path, std::string_view more = "") {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: secret\r\n" + std::string(more) + "\r\n";
  }
  static std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: secret\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           std::string(more) + "\r\n" + std::string(body);
  }

  routes::Services services_;
  routes::AgentStatus status_;
  routes::AppSettings settings_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};  // on_thread() works to the end
  std::unique_ptr<routes::App> app_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
  unsigned short port_ = 0;
};

}  // namespace caisson
