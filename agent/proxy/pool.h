// Pool: connections to servers in workspaces whose last answer was complete, for the next request to the same port of the same
// workspace. The launcher has made each of them inside that workspace's network, so a kept connection leads to no other place
// than a new one would. Only `forget()` must come before a workspace's name can mean another workspace.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

#include "agent/http/coro.h"

namespace caisson::proxy {

class Pool {
 public:
  static constexpr std::size_t kOfPort = 32, kOfWorkspace = 64, kAll = 256;
  // Shorter than servers wait for a next request, so that they rarely close a connection while one is on its way.
  static constexpr std::chrono::milliseconds kIdle{1000};
  // A server that serves one connection at a time answers no other while one is kept. It gives way after this time.
  static constexpr std::chrono::milliseconds kPatience{50};

  using Socket = asio::ip::tcp::socket;
  using PoolClock = std::chrono::steady_clock;
  struct Place {
    std::string workspace;
    std::uint16_t port = 0;
    auto operator<=>(const Place&) const = default;
  };
  // A request on a new connection that waits for the first byte of its answer.
  class Waiting {
   public:
    Waiting(Pool& pool, const Place& place);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Pool& pool_;
    const Place place_;
    std::list<PoolClock::time_point>::iterator at_;
  };

  explicit Pool(asio::any_io_executor executor) : timer_(std::move(executor)) {}

  // The connection that was kept last. One that the server has closed, or has sent anything on without being asked, is dropped:
  // those bytes would be taken for the next answer.
  [[nodiscard]] std::optional<Socket> take(const Place& place);
  // born: age() before the connection was made. It is closed if there is no room, or something was forgotten since.
  void keep(const Place& place, Socket socket, std::uint64_t born);
  // The workspace has ended or is paused: what leads into it is closed, and what is in use is not kept.
  void forget(const std::string& workspace);
  [[nodiscard]] std::uint64_t age() const { return age_; }
  [[nodiscard]] std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    Place place;
    Socket socket;
    PoolClock::time_point since;
  };
  [[nodiscard]] bool is_wanted_elsewhere(const Place& place, PoolClock::time_point now) const;
  void look_later();
  void look();

  asio::steady_timer timer_;
  bool timed_ = false;
  std::uint64_t age_ = 0;
  std::list<Kept> kept_;  // the oldest first
  std::map<Place, std::list<PoolClock::time_point>> waiting_;
};

}  // namespace caisson::proxy
