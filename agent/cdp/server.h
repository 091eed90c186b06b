// Server: the descriptors around the router. A listening UNIX socket (mode 0600), at most kMaxClients connections, and the two
// pipes of Chromium. Nothing here waits for one peer: what the browser says is read at once and queued for its client; what
// clients say is read only while the browser takes it. Every queue is bounded, and who exceeds a bound is the one that is closed.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/cdp/records.h"
#include "agent/cdp/router.h"
#include "launcher/common/base/loop.h"

namespace caisson::cdp {

struct Limits {
  std::size_t message_bytes = kMaxMessageBytes;
  std::size_t waiting_bytes = 64u * 1024 * 1024;     // for a client, behind the message that is being written
  std::size_t held_bytes = 512u * 1024 * 1024;       // of all clients, both directions: beyond it, who holds most is closed
  std::size_t to_browser_bytes = 16u * 1024 * 1024;  // waiting: then no client is read
  std::size_t clients = 32;
  std::int64_t hello_us = 10'000'000;    // from the connection to its first message
  std::int64_t attach_us = 30'000'000;   // for the browser to give a session
  std::int64_t farewell_us = 5'000'000;  // for a client that was let go to take what is left
};

class Server final : private Wires {
 public:
  // Told at the end of a turn of the loop; none may destroy the server.
  struct Events {
    std::function<void(std::size_t count)> clients = [](std::size_t) {};
    std::function<void(ClientId client, const std::string& why)> ended = [](ClientId, const std::string&) {};
    std::function<void()> browser_closed = [] {};  // its end of the pipes is gone
  };

  Server(Loop& loop, Limits limits, Events events);
  ~Server() override;

  // Takes the place of a socket that is there. Errors: those of bind(2); invalid_argument, a path of 108 bytes or more.
  [[nodiscard]] Status listen(const std::string& path);
  // A new browser; `name` is told to clients. The ends of its pipes become non-blocking.
  [[nodiscard]] Status connect_browser(Fd to_browser, Fd from_browser, const std::string& name);
  void disconnect_browser(const std::string& why);  // every client is let go
  // While held, nothing passes between clients and the browser, in either direction.
  void hold(bool on);
  [[nodiscard]] bool held() const { return held_; }
  [[nodiscard]] std::size_t clients() const { return clients_.size(); }
  [[nodiscard]] Router& router() { return router_; }
  // Writes what the router was asked to say outside of a callback of this class.
  void settle();

 private:
  static constexpr std::size_t kMaxHelloBytes = 4096;
  enum class State { hello, opening, open, leaving };
  struct Client {
    explicit Client(Fd fd) : socket(std::move(fd)) {}
    Fd socket;
    State state = State::hello;
    Records in{kMaxHelloBytes};
    Outbox out;
    Loop::TimerId timer = 0;
    std::uint32_t events = 0;
    std::string why;       // it is let go
    bool at_once = false;  // without what is still to be written
    bool farewell = false;
  };

  void to_browser(Outgoing message) override;
  void to_client(ClientId client, Outgoing message) override;
  void opened(ClientId client, std::string why) override;
  void end(ClientId client, std::string why) override;

  void accept_all();
  void on_client(ClientId id, std::uint32_t events);
  void read_hello(ClientId id, Client& client);
  void hello(ClientId id, Client& client, std::string_view text);
  void read_messages(ClientId id, Client& client);
  void read_browser();
  void lose_browser();
  void leave(Client& client, std::string why, bool at_once);
  void enforce_total();
  [[nodiscard]] static bool may_go(const Client& client);
  void close(ClientId id);
  [[nodiscard]] bool reads(const Client& client) const;
  void rewatch();

  Loop& loop_;
  const Limits limits_;
  const Events events_;
  Router router_{*this};
  std::map<ClientId, std::unique_ptr<Client>> clients_;
  ClientId last_client_ = 0;
  std::size_t told_clients_ = 0;
  Fd listener_, to_browser_, from_browser_;
  std::string browser_name_;
  Outbox browser_out_;
  Records browser_in_;
  bool browser_waits_ = false;   // for room in the pipe
  bool browser_closed_ = false;  // not told yet
  bool held_ = false;
  std::unique_ptr<char[]> scratch_;
};

}  // namespace caisson::cdp
