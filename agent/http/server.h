// Server: the listening socket and its connections. What the requests mean is the Application's business: the server
// knows framing, limits and time. Single-threaded; every object here belongs to the io_context's thread.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include <boost/asio/io_context.hpp>

#include "agent/http/coro.h"
#include "agent/http/event_stream.h"
#include "agent/http/limits.h"
#include "agent/http/request.h"
#include "agent/http/response.h"
#include "agent/http/websocket.h"

namespace caisson::http {

// One admitted request. The connection fills request.body, then calls serve() or, for an upgrade, converse().
class Exchange {
 public:
  explicit Exchange(Request req) : request(std::move(req)) {}
  virtual ~Exchange() = default;
  virtual asio::awaitable<Response> serve(StreamWriter& writer) = 0;
  virtual task<void> converse(WebSocket socket) = 0;

  Request request;
  Pairs response_headers;  // added to the answer, event streams included
  std::string workspace;   // whose part of the room its bytes take
  std::size_t body_limit = 0;
  bool streamed_body = false;  // the handler takes it by StreamWriter::read_piece()
  bool websocket = false;
};

using Admission = std::variant<Response, std::unique_ptr<Exchange>>;

class Application {
 public:
  virtual ~Application() = default;
  // Called with the head alone, before any byte of the body is read: routing, origin and auth. A Response refuses.
  virtual asio::awaitable<Admission> admit(Request head) = 0;
};

class Server {
 public:
  Server(asio::io_context& io, Application& application, Limits limits = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Port 0 lets the kernel choose; the port in use is returned. already_exists: it is taken.
  [[nodiscard]] Result<unsigned short> listen(const std::string& address, unsigned short port);
  void start();  // accepts from now on

  // Stops accepting, closes idle connections, lets requests under way finish for `grace`, then cuts the rest.
  [[nodiscard]] asio::awaitable<void> stop(std::chrono::milliseconds grace);
  [[nodiscard]] std::size_t connections() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace caisson::http
