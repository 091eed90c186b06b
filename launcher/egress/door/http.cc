#include <algorithm>
#include <utility>

#include "launcher/egress/door/exchange.h"
#include "launcher/egress/door/talk.h"
#include "launcher/egress/parse/request_rule.h"

namespace caisson::egress {
namespace {

constexpr std::int64_t kNextRequestUs = 60'000'000;
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

// Whether the client has gone without a word between two requests, as it may.
enum class Read { head, nothing, refused };

// Until a whole head is there: a slow sender has so much time for all of it.
Task<Read> read_head(Connection& connection, RequestHead& head, std::size_t& size, bool first) {
  HeadScan scan;
  const std::int64_t begin_us = connection.now_us();
  std::int64_t until_us = begin_us + (first ? Connection::kFirstBytesUs : std::min(kNextRequestUs, connection.idle_us()));
  bool began = !connection.ahead.empty();
  if (began) until_us = begin_us + Connection::kHandshakeUs;
  for (;;) {
    const Outcome read = read_request_head(connection.ahead, scan, head);
    if (read.refused()) connection.refuse(read.refusal, read.why);
    size = read.size;
    if (read.step != Outcome::Step::need_more) co_return read.done() ? Read::head : Read::refused;
    const bool more = co_await read_more(connection, until_us);
    if (more && !std::exchange(began, true)) until_us = connection.now_us() + Connection::kHandshakeUs;
    if (more) continue;
    if (!began) co_return Read::nothing;
    connection.refuse(Refusal::timeout, "the request's head did not come in time, or not as a whole");
    co_return Read::refused;
  }
}

// Where the request goes. False: not where this connection leads.
bool find_place(Connection& connection, const RequestHead& head, const std::optional<HostPort>& only, HostPort& place) {
  const bool connect = head.form == RequestHead::Form::authority;
  if (!only && head.form != RequestHead::Form::absolute && !connect)
    return connection.refuse(Refusal::framing, "to a proxy the whole address is said"), false;
  if (only && connect) return connection.refuse(Refusal::framing, "no proxy was asked here"), false;
  if (only) place = *only;
  if (!head.host) return true;
  HostPort said{*head.host, head.port};
  if (const auto* address = std::get_if<Address>(&said.host); address != nullptr)
    if (auto name = connection.workspace.host_at(*address)) said.host = std::move(*name);
  if (only && (said.host != only->host || said.port != only->port)) {
    connection.facts.host = host_text(said.host), connection.facts.port = said.port;
    return connection.refuse(Refusal::host_differs, "the connection leads to another host than the request asks for"), false;
  }
  place = std::move(said);
  return true;
}

bool may_ask(Connection& connection, const RequestHead& head, const HostPort& place) {
  if (!connection.permitted(place.host, place.port)) return false;
  const Objection objection = objection_to(head, *connection.list, connection.verdict);
  if (objection.refusal != Refusal::none) connection.refuse(objection.refusal, objection.detail);
  return objection.refusal == Refusal::none;
}

// Where a mapping leads a request.
struct Led {
  bool inside = false;
  HostPort to;
};

// To the workspace itself, whatever the list does not name; never a host that it denies. To another place as if that was asked
// for.
bool may_be_led(Connection& connection, const RequestHead& head, const HostPort& place, const Led& led) {
  connection.verdict = decide(*connection.list, place.host, place.port);  // no grant: it would be used up by what stays inside
  if (connection.verdict.kind == Verdict::Kind::deny) return connection.permitted(place.host, place.port);
  Facts& facts = connection.facts;
  facts.host = host_text(place.host), facts.port = place.port, facts.rule = connection.verdict.rule;
  facts.generation = connection.generation(), facts.mapped = true;
  return led.inside || may_ask(connection, head, led.to);
}

// One that was used before, for requests that can be sent once more if it turns out to be dead; else a new one.
Task<bool> reach(Connection& connection, HostPort place, std::optional<Led> led, bool repeatable, bool& kept) {
  kept = false;
  if (led && led->inside) co_return co_await connection.enter(led->to.port);
  if (led) co_return co_await connection.dial(led->to.host, led->to.port);
  if (auto one = repeatable ? connection.workspace.kept.take(place.host, place.port, connection.list) : std::nullopt) {
    connection.upstream = std::move(one->stream);
    connection.facts.address = one->address;
    kept = true;
    co_return true;
  }
  co_return co_await connection.dial(place.host, place.port);
}

void keep(Connection& connection, const HostPort& place) {
  Kept::One one;
  one.stream = std::move(connection.upstream);
  one.host = place.host, one.port = place.port, one.address = connection.facts.address, one.by = connection.list;
  connection.workspace.kept.keep(std::move(one));
}

enum class After { next, relay, end };

Task<After> fail_exchange(Connection& connection, Exchange::End end, bool to_head) {
  connection.upstream.reset();
  if (end == Exchange::End::client_gone || end == Exchange::End::broken) {
    connection.client.reset_on_close();
    connection.record(end == Exchange::End::broken ? "reset" : "client gone");
    co_return After::end;
  }
  if (end == Exchange::End::bad_request) connection.refuse(Refusal::framing, "the request's body is malformed");
  else connection.facts.error = end == Exchange::End::late ? ETIMEDOUT : end == Exchange::End::bad_answer ? EPROTO : ECONNRESET;
  co_await turn_away_http(connection, !to_head);
  co_return After::end;
}

Task<After> answer(Connection& connection, Exchange::Asked asked, HostPort place, std::optional<Led> led, bool repeatable) {
  if (led) connection.upstream.reset();  // of a tunnel, to the place itself
  for (;;) {
    if (!connection.upstream) {
      const bool reached = co_await reach(connection, place, led, repeatable, asked.kept);
      if (!reached) {
        co_await turn_away_http(connection, !asked.to_head);
        co_return After::end;
      }
    }
    Exchange exchange(connection, asked);
    const Exchange::End end = co_await exchange.run();
    connection.facts.up += exchange.up(), connection.facts.down += exchange.down();
    if (end == Exchange::End::switched) co_return After::relay;
    if (end == Exchange::End::stale) {
      connection.upstream.reset();
      continue;
    }
    if (end != Exchange::End::done) co_return co_await fail_exchange(connection, end, asked.to_head);
    if (exchange.server_stays() && !led) keep(connection, place);
    connection.upstream.reset();
    connection.record("done");
    if (exchange.client_stays()) co_return After::next;
    co_await connection.linger();
    co_return After::end;
  }
}

Task<bool> establish(Connection& connection, HostPort place) {
  connection.facts.via = Via::connect;
  const bool reached = co_await connection.reach(place.host, place.port);
  if (!reached) co_return co_await turn_away_http(connection);
  const bool told = co_await connection.send(std::string(kEstablished), connection.now_us() + Connection::kHandshakeUs);
  if (!told) co_return co_await turn_away_at_once(connection);
  co_return co_await talk_tunnel(connection, place);
}

// Its target becomes the mapping's.
std::optional<Led> find_led(const Connection& connection, const HostPort& place, RequestHead& head) {
  const Mapping* mapping = find_mapping(connection.mappings(), place.host, place.port, head.target);
  if (mapping == nullptr) return std::nullopt;
  head.target = mapped_target(*mapping, head.target);
  return Led{mapping->inside, {mapping->to_host, mapping->to_port}};
}

Exchange::Asked asked_of(const Connection& connection, const RequestHead& head, const HostPort& place) {
  Exchange::Asked out;
  out.last = is_last(head, *connection.list, connection.verdict);
  out.text = request_text(head, place, out.last);
  out.body = head.body;
  out.minor = head.minor;
  out.keep_alive = head.keep_alive;
  out.to_head = head.method == "HEAD";
  out.websocket = head.websocket;
  return out;
}

}  // namespace

Task<bool> talk_http(Connection& connection, std::optional<HostPort> only) {
  for (bool first = true;; first = false) {
    RequestHead head;
    std::size_t size = 0;
    const Read read = co_await read_head(connection, head, size, first);
    if (read == Read::nothing) {
      connection.facts.host.clear();  // nothing went anywhere: there is nothing to be recorded
      co_return false;
    }
    if (only) connection.facts.host = host_text(only->host), connection.facts.port = only->port;
    HostPort place;
    if (read == Read::refused || !find_place(connection, head, only, place)) co_return co_await turn_away_http(connection);
    if (head.form == RequestHead::Form::authority) {
      connection.ahead.erase(0, size);
      co_return co_await establish(connection, std::move(place));
    }
    if (!only) connection.facts.via = Via::http;
    const bool to_head = head.method == "HEAD",
               repeatable = only_reads(head.method) && head.body.kind == BodyKind::none && !head.websocket;
    const std::optional<Led> led = find_led(connection, place, head);
    const bool may = led ? may_be_led(connection, head, place, *led) : may_ask(connection, head, place);
    if (!may) co_return co_await turn_away_http(connection, !to_head);
    Exchange::Asked asked = asked_of(connection, head, place);
    connection.ahead.erase(0, size);
    const After after = co_await answer(connection, std::move(asked), std::move(place), led, repeatable);
    if (after != After::next) co_return after == After::relay;
  }
}

}  // namespace caisson::egress
