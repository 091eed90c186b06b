// Proxy: brings requests to servers in a workspace. Every connection is made by the launcher, inside the workspace's network
// namespace; this process cannot connect to anything, so no request reaches the agent's, the launcher's or the host's ports.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/http/server.h"
#include "agent/proxy/backend.h"
#include "agent/proxy/destination.h"
#include "agent/proxy/pool.h"

namespace caisson::proxy {

class Proxy {
 public:
  static constexpr std::size_t kRequests = 256;  // of one workspace at a time, WebSockets included
  static constexpr std::size_t kConnecting = 8;  // connections of one workspace that are being made at a time

  Proxy(bridge::LauncherClient& launcher, std::chrono::milliseconds silence)
      : pool(launcher.executor()), launcher_(launcher), silence_(silence) {}
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // drop_authorization: the request's Authorization is ours, not the app's. kept: lives as long as the exchange.
  [[nodiscard]] std::unique_ptr<http::Exchange> exchange(http::Request request, Destination to, bool drop_authorization,
                                                         std::string workspace, std::shared_ptr<void> kept);

  // The place of one request among those of its workspace; false: there is none.
  class Slot {
   public:
    Slot(Proxy& proxy, std::string workspace);
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    explicit operator bool() const { return granted_; }

   private:
    Proxy& proxy_;
    const std::string workspace_;
    bool granted_;
  };
  // Waits for its turn among the workspace's connections. A server that accepts nothing holds up only its own workspace.
  [[nodiscard]] task<asio::ip::tcp::socket> connect(std::string workspace, std::uint16_t port);
  [[nodiscard]] std::chrono::milliseconds silence() const { return silence_; }

  Pool pool;

 private:
  // One connection that is being made.
  class Connecting;
  bridge::LauncherClient& launcher_;
  const std::chrono::milliseconds silence_;
  std::map<std::string, std::size_t> requests_, connecting_;
};

}  // namespace caisson::proxy
