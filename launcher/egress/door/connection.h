// One connection of a session, from its accept to its record. What it says is read by a coroutine (talk.h), which ends when the
// connection is over or has become a plain relay; the relay then goes on without it, and without its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/egress/door/records.h"
#include "launcher/egress/door/relay.h"
#include "launcher/egress/door/workspace.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

class Connection {
 public:
  static constexpr std::int64_t kFirstBytesUs = 5'000'000, kHandshakeUs = 10'000'000, kLingerUs = 2'000'000;

  // dialed: the connection outside, where it was made before; grant: what permitted that, if it was for one connection.
  Connection(Workspace& workspace, Member whose, Fd client, Address to, std::uint16_t port, std::optional<Dialed> dialed,
             std::uint32_t grant);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  void begin();
  void end_now();  // the workspace ends

  [[nodiscard]] std::int64_t now_us() const { return workspace.house.poll.now_us(); }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }  // of `list`
  [[nodiscard]] std::int64_t idle_us() const { return std::int64_t{list->limits.idle_seconds} * 1'000'000; }

  // Asks the list, or the dialer, which asks it again. False: `facts` says why not, nothing is told yet.
  [[nodiscard]] bool permitted(const Host& host, std::uint16_t port);
  [[nodiscard]] Task<bool> dial(Host host, std::uint16_t port);
  // Where requests are led: by clients, so not those of an operator's session.
  [[nodiscard]] const Mappings& mappings() const;
  // To a server of the workspace's own, where a mapping leads.
  [[nodiscard]] Task<bool> enter(std::uint16_t port);
  [[nodiscard]] Task<bool> reach(Host host, std::uint16_t port);  // both, one after the other
  void refuse(Refusal refusal, std::string_view detail = {}) { facts.refusal = refusal, facts.detail = detail; }
  // The record of what `facts` says, once for each connection outside or refusal; then they are as new.
  void record(std::string_view ended = {});

  // False: the client takes no more, or time is over.
  [[nodiscard]] Task<bool> send(std::string text, std::int64_t deadline_us);
  // Ends our side and takes what still comes, so that the client reads our last words before it hears of the end. RST would
  // overtake them.
  [[nodiscard]] Task<bool> linger();

  Workspace& workspace;
  const Member whose;
  const std::shared_ptr<const List> list;  // the one of the time of its accept
  const std::shared_ptr<ByteBudget> bytes;
  const Address to;  // where the client wanted to connect to
  const std::uint16_t port;
  Stream client;
  std::unique_ptr<Stream> upstream;
  std::string ahead;  // bytes of the client that were read and are to be sent on
  Facts facts;
  Verdict verdict;  // of what was asked for last
  std::list<std::unique_ptr<Connection>>::iterator place;

 private:
  [[nodiscard]] bool connected(Dialed dialed);
  [[nodiscard]] Task<bool> talk();
  void go_on();  // after talk()
  void over(std::string_view how);

  const std::uint32_t generation_;
  std::uint32_t grant_;
  const Counted counted_;
  std::unique_ptr<Dialed> dialed_;  // of a connector's
  Poll::Timer next_;
  bool over_ = false;
  std::unique_ptr<Relay> relay_;
  std::optional<Task<bool>> talk_;  // the last member: what it uses outlives it
};

}  // namespace caisson::egress
