// Server: the listening socket and its connections. It knows framing, limits and time; the Application knows what requests mean.
// Single-threaded; every object here belongs to the io_context's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "agent/http/coro.h"
#include "agent/http/event_stream.h"
#include "agent/http/limits.h"
#include "agent/http/network.h"
#include "agent/http/request.h"
#include "agent/http/response.h"
#include "agent/http/tls_context.h"
#include "agent/http/websocket.h"
#include "launcher/common/base/fd.h"

namespace caisson::traces {
class Tracer;
}

namespace caisson::http {

class TlsStream;
struct CallLine;  // access_log.h

// The client's end of a connection that is handed over.
using ClientSocket = std::variant<asio::ip::tcp::socket*, TlsStream*>;

// The answer once Exchange::still_allowed() is false.
[[nodiscard]] Response credential_ended();

// One admitted request. The connection fills request.body, then calls serve() or, for an upgrade, converse().
class Exchange {
 public:
  explicit Exchange(Request req) : request(std::move(req)) {}
  virtual ~Exchange() = default;
  virtual asio::awaitable<Response> serve(StreamWriter& writer) = 0;
  virtual task<void> converse(WebSocket socket) = 0;
  // Asked after serve(): whether the connection is now to be handed to tunnel(). `early`: what the client has sent already. The
  // socket outlives the call, and is closed to end it. The result: how many bytes the client got.
  [[nodiscard]] virtual bool upgraded() const { return false; }
  virtual task<std::uint64_t> tunnel(ClientSocket /*client*/, std::string /*early*/) { co_return 0; }

  // Whether the client's credential still permits what it has begun. Asked after the body has come, and now and then (limits.h).
  [[nodiscard]] bool still_allowed() const { return !allowed || allowed(); }

  Request request;
  std::function<bool()> allowed = {};  // empty: no credential was needed
  Pairs response_headers;              // added to the answer, event streams included
  std::string workspace;               // the workspace that pays for its bytes
  std::string owner;                   // the credential whose request it is, among those under way; "": it needed none
  std::uint16_t port = 0;              // of the server whose answer it is; 0: the answer is ours
  std::size_t body_limit = 0;
  bool streamed_body = false;  // the handler takes it by StreamWriter::read_piece()
  bool relayed = false;        // the answer is another server's: nothing is added to its events
  bool narrow = false;         // its credential is for one port or path
  bool websocket = false;
  bool immediate = false;  // serve() waits for nothing
  bool logged = true;      // in the access log; probes are not
};

using Admission = std::variant<Response, std::unique_ptr<Exchange>>;

class Application {
 public:
  virtual ~Application() = default;
  // Called with the head alone, before any byte of the body is read: routing, origin and auth. A Response refuses.
  virtual asio::awaitable<Admission> admit(Request head) = 0;
};

struct Front {
  Networks proxies = {};                 // whose word on their clients counts (forwarded.h)
  int access_log_fd = -1;                // -1: no access log
  std::function<TlsContext()> tls = {};  // asked for each connection; empty: connections are plain
  traces::Tracer* tracer = nullptr;      // of a server whose requests are traced; outlives it
};

class Server {
 public:
  Server(asio::io_context& io, Application& application, Limits limits = {}, Front front = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Port 0 lets the kernel choose; the port in use is returned. already_exists: it is taken.
  [[nodiscard]] Result<unsigned short> listen(const std::string& address, unsigned short port);
  void start();  // accepts from now on
  // Serves what comes out of a workspace's network, too, as requests with `inside` set. listener: a listening TCP socket, which
  // is closed with the result, or when the server stops.
  [[nodiscard]] Result<std::shared_ptr<void>> serve_inside(Fd listener, std::string workspace);

  // From now on each answer ends its connection, so that clients look for another server while this one still accepts.
  void drain();
  // Stops accepting, closes idle connections, ends WebSockets (1001) and event streams that would go on for ever, lets requests
  // under way finish for `grace`, then ends the rest.
  [[nodiscard]] asio::awaitable<void> stop(std::chrono::milliseconds grace);
  [[nodiscard]] std::size_t connections() const;
  void flush_log();                      // before the process ends
  void note_call(const CallLine& line);  // in the access log
  // What is under way, for operators.
  struct Load {
    std::size_t held_bytes = 0, held_limit = 0;  // the traffic budget
    std::size_t lane_waiting = 0;
    std::uint64_t lane_turns = 0;
  };
  [[nodiscard]] Load load() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace caisson::http
