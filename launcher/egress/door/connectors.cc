#include "launcher/egress/door/connectors.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "launcher/common/capture/capture.h"
#include "launcher/egress/door/connection.h"

namespace caisson::egress {
namespace {

constexpr std::uint16_t kNamesPort = 53, kHttpPort = 80, kTlsPort = 443;
constexpr std::size_t kMostAsked = 1024, kMostNamed = 16'384;  // of one connector; of a workspace
constexpr std::int64_t kNamedUs = 20'000'000;  // longer than a connector takes between our answer and its connect(2)

// The port of the loopback that a connection comes from; 0: it comes from elsewhere. Nothing: it is over already.
std::optional<std::uint16_t> port_of_peer(const Fd& client) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(client.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return std::nullopt;
  if (peer.sin_family != AF_INET) return 0;
  return peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? ntohs(peer.sin_port) : 0;
}

void reset(const Fd& client) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// What is told in words after the connection is made: a refusal that can be read says more than an errno.
bool tells(std::uint16_t port) { return port == kHttpPort || port == kTlsPort; }

}  // namespace

// A session's connector. What it asks for is decided by its domain's list as it is at that moment.
class Connectors::One {
 public:
  One(Connectors& owner, std::string_view whose, Fd line)
      : owner_(owner),
        whose_(whose),
        link_(
            owner.workspace_.house.poll, std::move(line),
            [this](std::string_view message, const std::vector<Fd>& fds) { return fds.empty() && heard(message); },
            [this] { owner_.forget(*this); }) {}

 private:
  bool heard(std::string_view message) {
    Ask ask;
    if (message.size() != sizeof ask) return false;
    std::memcpy(&ask, message.data(), sizeof ask);
    std::erase_if(asked_, [](const Task<bool>& one) { return one.done(); });
    if (ask.wish == Wish::withdraw) return withdraw(ask.from), true;
    if (ask.wish != Wish::connect || ask.from == 0) return false;
    if (asked_.size() >= kMostAsked) return say(ask.id, EAGAIN);
    asked_.push_back(decide(ask));
    return true;
  }
  void withdraw(std::uint16_t from) {
    if (const auto named = owner_.named_.find(from); named != owner_.named_.end() && named->second.by == this)
      owner_.named_.erase(named);
  }
  bool say(std::uint32_t id, int error) { return link_.say(message_of(Reply{id, error})); }

  Task<bool> decide(Ask ask) {
    Workspace& workspace = owner_.workspace_;
    Named named{.by = this, .whose = workspace.member_of(whose_), .port = ask.port};
    named.to.v6 = ask.v6 != 0;
    std::copy_n(ask.address, named.to.v6 ? 16 : 4, named.to.bytes.begin());
    // The session has no servers: of the loopback nothing is there but our own proxy.
    const bool loopback = class_of(named.to) == AddressClass::loopback, names = ask.port == kNamesPort;
    if (loopback && !names && ask.port != capture::kDoorPort) co_return say(ask.id, ECONNREFUSED);
    Facts facts;
    facts.port = ask.port, facts.generation = workspace.generation, facts.since_us = workspace.house.poll.now_us();
    facts.host = named.to.text();
    if (const Refusal refusal = workspace.admitted(named.whose); refusal != Refusal::none) {
      facts.refusal = refusal;
      co_return refuse(ask, named.whose, facts, ECONNREFUSED);
    }
    named.counted.emplace(workspace.house, named.whose.way);
    const auto list = named.whose.way->list;  // `facts` has texts of it
    if (!loopback && !names) {
      auto name = workspace.host_at(named.to);
      const Host host = name ? std::move(*name) : Host(named.to);
      Verdict verdict;
      const bool may =
          workspace.permits(*list, named.whose, named.grant, host, ask.port, verdict, facts) && (name || !is_synthetic(named.to));
      if (!may && !tells(ask.port)) {
        if (facts.refusal == Refusal::none) facts.refusal = Refusal::no_such_name;
        co_return refuse(ask, named.whose, facts, EACCES);
      }
      if (may && ask.waits != 0 && ask.port != kHttpPort) {
        Dialed dialed = co_await workspace.house.dialer.dial(workspace.id, named.whose.way->domain, host, ask.port);
        facts.rule = dialed.rule, facts.refusal = dialed.refusal, facts.error = dialed.error;
        if (dialed.address) facts.address = dialed.address;
        if (!dialed.fd) {
          facts.why = why_of(*list, facts.rule);
          co_return refuse(ask, named.whose, facts, dialed.refusal != Refusal::none ? EHOSTUNREACH : dialed.error);
        }
        named.dialed = std::move(dialed);
      }
    }
    co_return say(ask.id, owner_.name(ask.from, std::move(named)) ? 0 : EADDRINUSE);
  }

  bool refuse(const Ask& ask, const Member& whose, Facts& facts, int error) {
    Records& records = owner_.workspace_.records;
    if (facts.refusal != Refusal::none) records.refused(whose, facts, owner_.workspace_.house.poll.now_us());
    else records.ended(whose, facts, owner_.workspace_.house.poll.now_us(), true);
    return say(ask.id, error);
  }

  Connectors& owner_;
  const std::string whose_;
  Link link_;
  std::list<Task<bool>> asked_;  // the last member: what they use outlives them
};

Connectors::Connectors(Workspace& workspace) : workspace_(workspace), sweeping_(workspace.house.poll, [this] { sweep(); }) {}
Connectors::~Connectors() = default;

Status Connectors::listen(Fd listener) {
  listener_ =
      std::make_unique<Listener>(workspace_.house.poll, std::move(listener), [this](Fd client) { accepted(std::move(client)); });
  return listener_->begin();
}

void Connectors::add(std::string_view whose, Fd line) { all_.push_back(std::make_unique<One>(*this, whose, std::move(line))); }

void Connectors::forget(const One& one) {
  std::erase_if(named_, [&one](const auto& named) { return named.second.by == &one; });
  std::erase_if(all_, [&one](const auto& other) { return other.get() == &one; });
}

bool Connectors::name(std::uint16_t from, Named named) {
  const std::int64_t now_us = workspace_.house.poll.now_us();
  const auto there = named_.find(from);
  if (there != named_.end() && there->second.until_us > now_us) return false;
  if (named_.size() >= kMostNamed) sweep();
  if (named_.size() >= kMostNamed) return false;
  named.until_us = now_us + kNamedUs;
  named_.erase(from);
  named_.emplace(from, std::move(named));
  if (!sweeping_.is_set()) sweeping_.set(now_us + kNamedUs);
  return true;
}

void Connectors::sweep() {
  const std::int64_t now_us = workspace_.house.poll.now_us();
  std::erase_if(named_, [now_us](const auto& one) { return one.second.until_us <= now_us; });
  if (!named_.empty()) sweeping_.set(now_us + kNamedUs / 2);
}

void Connectors::accepted(Fd client) {
  workspace_.records.accepted();
  const auto from = port_of_peer(client);
  if (!from) return;
  auto named = named_.extract(*from);
  if (named.empty() || named.mapped().until_us <= workspace_.house.poll.now_us())
    return alarm(client, "what connects to the door's own listener was announced by no session");
  Named& one = named.mapped();
  workspace_.begin(std::move(client), one.to, one.port, one.whose, std::move(one.dialed), one.grant);
}

void Connectors::alarm(const Fd& client, std::string_view detail) const {
  reset(client);
  Facts facts;
  facts.host = "127.0.0.1", facts.refusal = Refusal::unregistered, facts.detail = detail,
  facts.generation = workspace_.generation;
  workspace_.records.refused({}, facts, workspace_.house.poll.now_us());
}

}  // namespace caisson::egress
