#include "launcher/egress/door/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "launcher/common/base/session_id.h"
#include "launcher/egress/door/talk.h"

namespace caisson::egress {
namespace {

constexpr std::uint16_t kNamesPort = 53;
constexpr std::size_t kMostLingered = 256 * 1024;

// What is sent in one write is meant to arrive: nothing waits here for more to come.
void send_at_once(const Stream& stream) {
  const int on = 1;
  (void)::setsockopt(stream.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string_view detail_of(const Dialed& dialed) {
  if (dialed.refusal != Refusal::upstream) return "";
  if (dialed.status == 407) return "the upstream proxy does not take our credential";
  return dialed.status != 0 ? "the upstream proxy refuses it" : "the upstream proxy has no address that is permitted";
}

Task<bool> talk_of(Connection& connection) {
  if (connection.port == kNamesPort) return talk_names(connection);
  return class_of(connection.to) == AddressClass::loopback ? talk_proxy(connection) : talk_transparent(connection);
}

}  // namespace

Connection::Connection(Workspace& workspace_, Member whose_, Fd client_, Address to_, std::uint16_t port_,
                       std::optional<Dialed> dialed, std::uint32_t grant)
    : workspace(workspace_),
      whose(std::move(whose_)),
      list(whose.way->list),
      bytes(whose.way->bytes),
      to(to_),
      port(port_),
      client(workspace_.house.poll, std::move(client_)),
      generation_(workspace_.generation),
      grant_(grant),
      counted_(workspace_.house, whose.way),
      dialed_(dialed ? std::make_unique<Dialed>(std::move(*dialed)) : nullptr),
      next_(workspace_.house.poll, [this] { go_on(); }) {
  facts.since_us = now_us();
  send_at_once(client);
}

void Connection::begin() { talk_.emplace(talk()); }

Task<bool> Connection::talk() {
  const bool relayed = co_await talk_of(*this);
  next_.set(now_us());  // there its frame is not in use any more
  co_return relayed;
}

void Connection::go_on() {
  const bool relayed = talk_->take();
  talk_.reset();
  if (!relayed || !upstream) return over({});
  relay_ = std::make_unique<Relay>(client, *upstream, std::exchange(ahead, {}), Relay::Shared{workspace.house.pipes, *bytes},
                                   idle_us(), [this](Relay::End end) {
                                     facts.up += relay_->up(), facts.down += relay_->down();
                                     over(end == Relay::End::done ? "done" : end == Relay::End::idle ? "idle" : "reset");
                                   });
  relay_->begin();
}

void Connection::over(std::string_view how) {
  if (std::exchange(over_, true)) return;
  record(how);
  workspace.end(*this);
}

void Connection::end_now() {
  if (std::exchange(over_, true)) return;
  if (relay_) facts.up += relay_->up(), facts.down += relay_->down();
  client.reset_on_close();
  if (upstream) upstream->reset_on_close();
  record("closed");
}

bool Connection::permitted(const Host& host, std::uint16_t to_port) {
  facts.generation = generation_;
  return workspace.permits(*list, whose, grant_, host, to_port, verdict, facts);
}

Task<bool> Connection::dial(Host host, std::uint16_t to_port) {
  if (dialed_) co_return connected(std::move(*std::exchange(dialed_, nullptr)));
  Dialed dialed = co_await workspace.house.dialer.dial(workspace.id, whose.way->domain, std::move(host), to_port);
  co_return connected(std::move(dialed));
}

Task<bool> Connection::enter(std::uint16_t to_port) {
  Dialed dialed = co_await workspace.house.inside.connect(workspace.id, to_port);
  co_return connected(std::move(dialed));
}

bool Connection::connected(Dialed dialed) {
  if (dialed.address) facts.address = dialed.address;
  facts.rule = dialed.rule;
  facts.upstream = dialed.upstream, facts.status = dialed.status;
  facts.error = dialed.refusal == Refusal::none ? dialed.error : 0;
  if (dialed.refusal != Refusal::none) refuse(dialed.refusal, detail_of(dialed));
  if (!dialed.fd) return false;
  upstream = std::make_unique<Stream>(workspace.house.poll, std::move(dialed.fd));
  send_at_once(*upstream);
  return true;
}

const Mappings& Connection::mappings() const {
  static const Mappings kNone;
  return whose.way && whose.way->domain == kCredentialsDomain ? kNone : *workspace.mappings;
}

Task<bool> Connection::reach(Host host, std::uint16_t to_port) {
  if (!permitted(host, to_port)) co_return false;
  co_return co_await dial(std::move(host), to_port);
}

void Connection::record(std::string_view ended) {
  const Via via = facts.via;
  facts.ended = ended;
  facts.why = why_of(*list, facts.rule);
  if (facts.refusal != Refusal::none) workspace.records.refused(whose, facts, now_us());
  else if (!facts.host.empty()) workspace.records.ended(whose, facts, now_us(), list->mode != Mode::open);
  facts = Facts();
  facts.via = via, facts.since_us = now_us();
}

Task<bool> Connection::send(std::string text, std::int64_t deadline_us) {
  while (!text.empty()) {
    const ssize_t sent = client.write(text);
    if (sent > 0) {
      text.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      const bool stirred = co_await Stirred(deadline_us, client);
      if (!stirred) co_return false;
    } else if (errno != EINTR) {
      co_return false;
    }
  }
  co_return true;
}

Task<bool> Connection::linger() {
  const std::int64_t until_us = now_us() + kLingerUs;
  client.end_of_writing();
  for (std::size_t taken = 0; taken < kMostLingered;) {
    static std::array<char, 4096> ignored;
    const ssize_t got = client.read(ignored);
    if (got == 0) co_return true;
    if (got > 0) {
      taken += static_cast<std::size_t>(got);
    } else if (errno == EAGAIN) {
      const bool stirred = co_await Stirred(until_us, client);
      if (!stirred) co_return false;
    } else if (errno != EINTR) {
      co_return false;
    }
  }
  co_return false;
}

}  // namespace caisson::egress
