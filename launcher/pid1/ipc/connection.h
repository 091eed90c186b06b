// One client connection of the launcher: checks that each message is a known op, permitted in this state, with a usable id;
// queues replies for a peer that reads slowly, up to a bound. A violation is reported once and nothing more is read.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/common/base/loop.h"
#include "launcher/common/ipc/channel.h"

namespace caisson::ipc {

class Connection {
 public:
  struct Request {
    std::int64_t id = 0;
    Op op = Op::hello;
    json::Value body;
  };
  struct Handler {
    std::function<void(Connection&, Request)> request;
    std::function<void(Connection&, const std::string& why)> violation;  // the peer broke the protocol: end it
    std::function<void(Connection&)> closed;                             // the peer is gone
  };

  static constexpr std::size_t kMaxQueued = 1024;  // messages waiting for a peer that does not read

  Connection(Fd socket, Loop& loop, Handler handler);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] Status start();
  void opened() { state_ = State::open; }  // hello was accepted
  void drop() { dead_ = true; }            // from now on nothing is read or sent
  [[nodiscard]] std::uint64_t number() const { return number_; }

  void reply(std::int64_t id, json::Value fields, std::vector<Fd> fds = {});
  void reply_error(std::int64_t id, const Error& error, const std::string& step = "");
  void event(json::Value fields);

 private:
  struct Outgoing {
    json::Value body;
    std::vector<Fd> fds;
  };
  void on_ready(std::uint32_t events);
  void read_messages();
  void take(Message message);
  void put(Outgoing message);
  bool flush();  // false: the peer is beyond help
  void violate(const std::string& why);

  Fd socket_;
  Loop& loop_;
  Handler handler_;
  State state_ = State::greeting;
  std::set<std::int64_t> pending_;  // ids without a reply yet
  std::deque<Outgoing> queue_;
  bool waiting_ = false;  // for EPOLLOUT
  std::uint64_t number_;
  bool dead_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // expires with this object
};

}  // namespace caisson::ipc
