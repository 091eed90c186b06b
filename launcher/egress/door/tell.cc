#include <array>
#include <cerrno>
#include <string>

#include "launcher/common/base/word.h"
#include "launcher/egress/door/permitted.h"
#include "launcher/egress/door/talk.h"
#include "launcher/egress/list/path.h"
#include "launcher/egress/parse/client_hello.h"

namespace caisson::egress {
namespace {

constexpr std::int64_t kWordUs = 1'000'000;  // for the client to show what it speaks, where its port does not say so
constexpr std::string_view kAccessDenied("\x15\x03\x03\x00\x02\x02\x31", 7);  // a fatal alert of TLS (RFC 8446 6.2)

std::string where(const Facts& facts) {
  const bool v6 = facts.host.find(':') != std::string::npos;
  return (v6 ? "[" + facts.host + "]" : facts.host) + (facts.port != 0 ? ":" + std::to_string(facts.port) : "");
}

std::string_view status_of(const Facts& facts) {
  if (facts.refusal == Refusal::framing) return "400 Bad Request";
  if (facts.refusal == Refusal::limit && !facts.detail.empty()) return "431 Request Header Fields Too Large";
  if (facts.refusal == Refusal::timeout) return "408 Request Timeout";
  if (facts.refusal == Refusal::dialer || facts.refusal == Refusal::limit) return "503 Service Unavailable";
  const bool of_proxy = facts.refusal == Refusal::upstream && facts.status != 403;
  if (facts.refusal != Refusal::none && !of_proxy) return "403 Forbidden";
  if (of_proxy && facts.status == 504) return "504 Gateway Timeout";
  return facts.error == ETIMEDOUT ? "504 Gateway Timeout" : "502 Bad Gateway";
}

// For whoever reads it, a person or an agent: what was refused, by what, and whether somebody may allow it.
std::string text_of(const Connection& connection) {
  const Facts& facts = connection.facts;
  std::string out = "caisson: ";
  if (!facts.host.empty()) out += where(facts) + ": ";
  if (facts.refusal == Refusal::none) return out + "the connection failed: " + errno_name(facts.error) + "\n";
  out += "refused: ";
  out += word(words(Refusal{}), static_cast<std::size_t>(facts.refusal));
  if (!facts.detail.empty()) (out += ": ") += facts.detail;
  if (facts.status != 0) out += ": it answers " + std::to_string(facts.status);
  if (const Rule* rule = rule_of(*connection.list, facts.rule); rule != nullptr) {
    if (facts.refusal == Refusal::path) out += ": " + paths_text(rule->paths);
    if (!rule->why.empty()) out += " (rule " + std::to_string(facts.rule) + ": " + rule->why + ')';
  }
  if (is_asked(*connection.list, facts.refusal)) out += "; the operator may allow it: try again in a while";
  return out + "\n";
}

}  // namespace

Task<bool> read_more(Connection& connection, std::int64_t deadline_us) {
  for (;;) {
    static std::array<char, 4096> buffer;  // not in the frame: nothing of it is used after a wait
    const ssize_t got = connection.client.read(buffer);
    if (got > 0) {
      connection.ahead.append(buffer.data(), static_cast<std::size_t>(got));
      co_return true;
    }
    if (got == 0) co_return false;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return false;
    const bool stirred = co_await Stirred(deadline_us, connection.client);
    if (!stirred) co_return false;
  }
}

Task<bool> turn_away_http(Connection& connection, bool with_body) {
  const std::string text = text_of(connection);
  std::string answer = "HTTP/1.1 ";
  answer += status_of(connection.facts);
  answer += "\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: ";
  answer += std::to_string(text.size()) + "\r\n\r\n" + (with_body ? text : "");
  connection.record();
  const bool sent = co_await connection.send(std::move(answer), connection.now_us() + Connection::kLingerUs);
  if (sent) co_await connection.linger();
  co_return false;
}

Task<bool> turn_away_tls(Connection& connection) {
  connection.record();
  const bool sent = co_await connection.send(std::string(kAccessDenied), connection.now_us() + Connection::kLingerUs);
  if (sent) co_await connection.linger();
  co_return false;
}

Task<bool> turn_away_at_once(Connection& connection) {
  connection.record();
  connection.client.reset_on_close();
  co_return false;
}

Task<bool> turn_away(Connection& connection) {
  const bool says = connection.facts.port == 80 || connection.facts.port == 443;
  if (connection.ahead.empty()) {
    if (connection.facts.refusal == Refusal::timeout) co_return co_await turn_away_at_once(connection);
    const bool more = co_await read_more(connection, connection.now_us() + (says ? Connection::kFirstBytesUs : kWordUs));
    if (!more) co_return co_await turn_away_at_once(connection);
  }
  const char first = connection.ahead.front();
  if (first == kTlsHandshake) co_return co_await turn_away_tls(connection);
  const bool http = first >= 'A' && first <= 'Z' && !connection.ahead.starts_with("SSH-");
  if (http) co_return co_await turn_away_http(connection, !connection.ahead.starts_with("HEAD "));
  co_return co_await turn_away_at_once(connection);
}

}  // namespace caisson::egress
