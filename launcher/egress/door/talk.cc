#include "launcher/egress/door/talk.h"

#include <array>
#include <cerrno>
#include <utility>

#include "launcher/egress/parse/client_hello.h"
#include "launcher/egress/parse/request_rule.h"
#include "launcher/egress/parse/socks5.h"

namespace caisson::egress {
namespace {

constexpr std::uint16_t kHttpPort = 80, kTlsPort = 443;

// Each of its requests is read: what port 80 is for, and what a rule that permits some methods or paths only can hold for.
bool is_plain(const Connection& connection, std::uint16_t port) {
  return port == kHttpPort || limits_requests(*connection.list, connection.verdict);
}

// What a server may take for TLS. Some look at no more of a record's version than that it is below 16.
bool may_be_tls(std::string_view ahead) {
  return ahead.front() == kTlsHandshake && (ahead.size() < 2 || static_cast<unsigned char>(ahead[1]) < 16);
}

bool same_server(Connection& connection, const ClientHello& hello, const HostPort& place) {
  const auto* name = std::get_if<Name>(&place.host);
  const bool other = hello.server && (name == nullptr || *hello.server != *name);
  // By its address, or by another name, its requests would not be seen.
  if (other && decide(*connection.list, *hello.server, place.port).inspect)
    return connection.refuse(Refusal::sni, "the ClientHello names a server that is inspected: ask for it by this name"), false;
  if (connection.verdict.sni == Sni::optional && (!hello.server || name == nullptr)) return true;
  // Where the mode permits every host, it permits every server name as well but the denied ones.
  const bool by_mode = connection.verdict.rule < 0 && connection.verdict.grant == 0;
  if (by_mode && (!hello.server || decide(*connection.list, *hello.server, place.port).kind == Verdict::Kind::allow)) return true;
  if (!hello.server) return connection.refuse(Refusal::sni, "the ClientHello names no server"), false;
  if (name != nullptr && *hello.server == *name) return true;
  // Browsers always send an ECH extension. Only with another outer name it may be real, and hide a third one.
  if (hello.ech) connection.refuse(Refusal::ech_or_fronting, "the ClientHello names another server and hides a name");
  else connection.refuse(Refusal::sni, "the ClientHello names another server");
  return false;
}

// Of a port of which nothing is known: where the client speaks first, and TLS, its server name has to be the one that was asked
// for. Where the server speaks first it is no TLS.
Task<bool> talk_any(Connection& connection, HostPort place) {
  while (connection.ahead.empty()) {
    static std::array<char, 4096> buffer;  // not in the frame: nothing of it is used after a wait
    const ssize_t got = connection.client.read(buffer);
    if (got > 0) connection.ahead.assign(buffer.data(), static_cast<std::size_t>(got));
    if (got > 0) break;
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) co_return true;  // the relay finds the same, and tells the server
    if (connection.upstream->peek(std::span(buffer).first(1)) >= 0 || errno != EAGAIN) co_return true;
    const bool stirred =
        co_await Stirred(connection.now_us() + connection.idle_us(), connection.client, connection.upstream.get());
    if (!stirred) co_return co_await turn_away_at_once(connection);
  }
  if (connection.ahead.front() != kTlsHandshake) co_return true;
  const bool agrees = co_await hello_agrees(connection, std::move(place));
  const bool other = connection.facts.refusal == Refusal::not_tls && !may_be_tls(connection.ahead);
  if (agrees || other) co_return connection.facts.refusal = Refusal::none, connection.facts.detail = {}, true;
  co_return co_await turn_away(connection);
}

SocksReply socks_reply(const Facts& facts) {
  if (facts.refusal == Refusal::no_such_name) return SocksReply::host_unreachable;
  if (facts.refusal == Refusal::upstream && facts.status != 403)
    return facts.status == 504 ? SocksReply::expired : SocksReply::failure;
  if (facts.refusal == Refusal::dialer) return SocksReply::failure;
  if (facts.refusal != Refusal::none) return SocksReply::not_allowed;
  switch (facts.error) {
    case ECONNREFUSED:
      return SocksReply::connection_refused;
    case ENETUNREACH:
      return SocksReply::network_unreachable;
    case ETIMEDOUT:
      return SocksReply::expired;
    default:
      return SocksReply::host_unreachable;
  }
}

template <class Reader>
Task<bool> read_part(Connection& connection, std::int64_t until_us, Reader read) {
  for (;;) {
    const Outcome outcome = read(std::string_view(connection.ahead));
    if (outcome.done()) {
      connection.ahead.erase(0, outcome.size);
      co_return true;
    }
    if (outcome.refused()) connection.refuse(outcome.refusal, outcome.why);
    if (outcome.refused()) co_return false;
    const bool more = co_await read_more(connection, until_us);
    if (!more) connection.refuse(Refusal::timeout, "the request did not come in time, or not as a whole");
    if (!more) co_return false;
  }
}

Task<bool> answer_socks(Connection& connection, SocksReply reply) {
  connection.record();
  const bool sent = co_await connection.send(socks_answer(reply), connection.now_us() + Connection::kLingerUs);
  if (sent) co_await connection.linger();
  co_return false;
}

Task<bool> talk_socks(Connection& connection) {
  connection.facts.via = Via::socks5;
  const std::int64_t until_us = connection.now_us() + Connection::kHandshakeUs;
  const bool greeted = co_await read_part(connection, until_us, read_socks_greeting);
  const bool heard = co_await connection.send(std::string(socks_greeting_answer(greeted)), until_us);
  if (!greeted || !heard) co_return co_await turn_away_at_once(connection);
  SocksRequest request;
  const auto read_request = [&request](std::string_view bytes) { return read_socks_request(bytes, request); };
  const bool asked = co_await read_part(connection, until_us, read_request);
  if (!asked) co_return co_await answer_socks(connection, SocksReply::no_such_command);
  HostPort place{*request.host, request.port};
  if (const auto* address = std::get_if<Address>(&place.host); address != nullptr)
    if (auto name = connection.workspace.host_at(*address)) place.host = std::move(*name);
  const bool reached = co_await connection.reach(place.host, place.port);
  if (!reached) {
    const SocksReply reply = socks_reply(connection.facts);
    co_return co_await answer_socks(connection, reply);
  }
  const bool told = co_await connection.send(socks_answer(SocksReply::succeeded), until_us);
  if (!told) co_return co_await turn_away_at_once(connection);
  co_return co_await talk_tunnel(connection, std::move(place));
}

}  // namespace

Task<bool> hello_agrees(Connection& connection, HostPort place) {
  HelloReader reader;
  const std::int64_t until_us = connection.now_us() + Connection::kFirstBytesUs;
  for (;;) {
    const Outcome read = reader.read(connection.ahead);
    if (read.done()) co_return same_server(connection, reader.hello(), place);
    if (read.refused()) connection.refuse(read.refusal, read.why);
    if (read.refused()) co_return false;
    const bool more = co_await read_more(connection, until_us);
    if (!more) connection.refuse(Refusal::timeout, "no ClientHello came in time");
    if (!more) co_return false;
  }
}

bool is_opened(const Connection& connection, const HostPort& place) {
  return is_opened(*connection.list, place.host, place.port);
}

Task<bool> hand_over(Connection& connection, HostPort place) {
  const bool taken = connection.workspace.house.opener.hand_over(connection, place);
  if (!taken) connection.refuse(Refusal::opener, "the process that opens TLS does not serve");
  if (!taken) co_return co_await turn_away(connection);
  connection.facts = Facts();  // the record is the opener's
  co_return false;
}

Task<bool> talk_tunnel(Connection& connection, HostPort place) {
  const bool opened = is_opened(connection, place);
  if (is_plain(connection, place.port) && !opened) co_return co_await talk_http(connection, std::move(place));
  if (place.port != kTlsPort && !opened) co_return co_await talk_any(connection, std::move(place));
  const bool agrees = co_await hello_agrees(connection, place);
  if (!agrees) co_return co_await turn_away(connection);
  if (opened) co_return co_await hand_over(connection, std::move(place));
  co_return true;
}

Task<bool> talk_transparent(Connection& connection) {
  HostPort place{connection.to, connection.port};
  if (auto name = connection.workspace.host_at(connection.to)) place.host = std::move(*name);
  const bool synthetic = is_synthetic(connection.to) && std::holds_alternative<Address>(place.host);
  // Each request says then where it leads.
  const bool mapped = place.port == kHttpPort && may_be_mapped(connection.mappings(), place.host, place.port);
  if (mapped) co_return co_await talk_http(connection, std::move(place));
  const bool permitted = connection.permitted(place.host, place.port);
  if (synthetic) connection.refuse(Refusal::no_such_name, "the address belongs to no name that was asked for within the hour");
  if (synthetic || !permitted) co_return co_await turn_away(connection);
  const bool opened = is_opened(connection, place), tls = place.port == kTlsPort || opened;
  if (is_plain(connection, place.port) && !opened) co_return co_await talk_http(connection, std::move(place));
  if (tls) {
    const bool agrees = co_await hello_agrees(connection, place);
    if (!agrees) co_return co_await turn_away(connection);
  }
  const bool reached = co_await connection.dial(place.host, place.port);
  if (!reached && connection.facts.refusal != Refusal::none) co_return co_await turn_away(connection);
  if (!reached) co_return co_await turn_away_at_once(connection);
  if (opened) co_return co_await hand_over(connection, std::move(place));
  if (tls) co_return true;
  co_return co_await talk_any(connection, std::move(place));
}

Task<bool> talk_proxy(Connection& connection) {
  connection.facts.via = Via::http;
  const bool more = co_await read_more(connection, connection.now_us() + Connection::kFirstBytesUs);
  if (!more) co_return false;
  if (connection.ahead.front() == kSocksVersion) co_return co_await talk_socks(connection);
  co_return co_await talk_http(connection, std::nullopt);
}

}  // namespace caisson::egress
