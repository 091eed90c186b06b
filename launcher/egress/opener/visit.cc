#include "launcher/egress/opener/visit.h"

#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "launcher/common/base/word.h"
#include "launcher/egress/list/path.h"
#include "launcher/egress/opener/open_exchange.h"
#include "launcher/egress/parse/request_rule.h"

namespace caisson::egress {
namespace {

constexpr std::int64_t kBudgetUs = 20'000;
constexpr std::size_t kMostPath = 256, kMostLingered = 256 * 1024;
constexpr const char* kForbidden = "403 Forbidden";

std::string answer_text(std::string_view status, const std::string& text) {
  std::string out = "HTTP/1.1 ";
  out += status;
  out += "\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: ";
  return out += std::to_string(text.size()) + "\r\n\r\n" + text;
}

// Without the query, which may be anything.
std::string_view path_of(const RequestHead& head) {
  const std::string_view target = head.target;
  return target.substr(0, std::min(target.find('?'), kMostPath));
}

std::string names_of(const std::vector<const Bound*>& used) {
  std::string out = "[";
  for (const Bound* one : used) out += (out.size() > 1 ? ",\"" : "\"") + one->binding.name + "\"";
  return out + "]";
}

std::string_view words_of(OpenExchange::End end) {
  switch (end) {
    case OpenExchange::End::done:
      return "done";
    case OpenExchange::End::unreachable:
      return "unreachable";
    case OpenExchange::End::bad_answer:
      return "bad answer";
    case OpenExchange::End::bad_request:
      return "bad request";
    case OpenExchange::End::broken:
      return "reset";
    case OpenExchange::End::idle:
      return "idle";
  }
  std::unreachable();
}

// A request with a body where most have none, or whose body waits for a word of the server, may be taken for one without: the
// body would be read as a request of its own, and an answer as another's.
bool may_be_misread(const RequestHead& head) {
  const bool usually_none = only_reads(head.method) || head.method == "DELETE";
  return (head.body.kind != BodyKind::none && usually_none) || head.expect_continue;
}

}  // namespace

// One request that goes out, on record however it ends: also where this goes in the midst, because the visit does.
struct Visit::Use {
  Visit& visit;
  const OpenExchange& exchange;
  const std::int64_t since_us;
  std::string_view ended = "closed";

  Use(Visit& of, const OpenExchange& exchange_, std::int64_t since) : visit(of), exchange(exchange_), since_us(since) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    JsonText told = visit.record("connection");
    told.string("ended", ended).number("status", exchange.status());
    told.number("up", static_cast<std::int64_t>(exchange.up())).number("down", static_cast<std::int64_t>(exchange.down()));
    if (exchange.scrubbed() > 0) told.number("scrubbed", static_cast<std::int64_t>(exchange.scrubbed()));
    told.number("ms", (visit.now_us() - since_us) / 1000);
    (void)visit.place_.launcher.tell(Said::record, visit.place_.id, told.text());
  }
};

Visit::Visit(Place& place, To to, Fd client, Fd server)
    : place_(place),
      to_(std::move(to)),
      list_(place.list_of(to_.domain)),
      verdict_(list_ ? decide(*list_, to_.place.host, to_.place.port) : Verdict()),
      bytes_(place.bytes_of(to_.domain)),
      client_stream_(place.poll, std::move(client)),
      server_stream_(place.poll, std::move(server)),
      over_(place.poll, [this] { place_.end(*this); }) {}

void Visit::begin() { talk_.emplace(talk()); }

Task<bool> Visit::talk() {
  const bool met = co_await meet();
  for (bool more = met; more;) more = co_await one_request();
  // Without its word for the end, so that half an answer is not taken for a whole one.
  if (client_ && !broken_) client_->close();
  if (server_) server_->close();
  over_.set(now_us());  // there its frame is not in use any more
  co_return met;
}

// The server first: a session whose server is not the one that it asked for is told so in HTTP, and no secret has gone anywhere.
Task<bool> Visit::meet() {
  const bool permitted = verdict_.kind == Verdict::Kind::allow && is_opened(*list_, to_.place.host, to_.place.port);
  if (!permitted) co_return co_await turn_away(Refusal::not_listed, "no policy opens it", "");
  SSL_CTX* const ours = place_.authority ? place_.authority->context_for(to_.host, now_us()) : nullptr;
  if (ours == nullptr) co_return co_await turn_away(Refusal::certificate, "the workspace's authority is not for this host", "");
  server_ = place_.trust.connect(server_stream_, to_.host);
  client_ = std::make_unique<Tls>(client_stream_, *ours, to_.ahead);
  if (!server_ || client_->ssl() == nullptr) co_return co_await turn_away(Refusal::opener, "OpenSSL has no memory", "");
  SSL_set_accept_state(client_->ssl());
  const bool verified = co_await server_->handshake(now_us() + kHandshakeUs);
  const long why = SSL_get_verify_result(server_->ssl());
  const bool believed = co_await client_->handshake(now_us() + kHandshakeUs);
  if (!verified && why != X509_V_OK)
    co_return co_await turn_away(Refusal::certificate, X509_verify_cert_error_string(why), "502 Bad Gateway");
  if (!verified) co_return co_await turn_away(Refusal::not_tls, "the server does not speak TLS", "502 Bad Gateway");
  if (!believed) co_return co_await turn_away(Refusal::certificate, "the session does not believe the workspace's authority", "");
  co_return true;
}

// Until a whole head is there. False: the session has gone, or has sent none in time.
Task<bool> Visit::read_head(RequestHead& head, std::size_t& size) {
  HeadScan scan;
  std::int64_t until_us = now_us() + (ahead_.empty() ? kNextRequestUs : kHandshakeUs);
  for (;;) {
    const Outcome read = ahead_.empty() ? need_more() : read_request_head(ahead_, scan, head);
    size = read.size;
    // An answer that nobody has asked for would be taken for that to this request.
    if (read.done()) co_return server_is_quiet();
    if (read.refused()) co_return co_await turn_away(read.refusal, std::string(read.why), "400 Bad Request");
    static std::array<char, 4096> buffer;  // nothing of it is used after a wait
    const ssize_t got = client_->read(buffer);
    if (got > 0) {
      if (ahead_.empty()) until_us = now_us() + kHandshakeUs;
      ahead_.append(buffer.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0 || errno != EAGAIN || !server_is_quiet()) co_return false;
    const bool stirred = co_await Stirred(until_us, client_stream_, &server_stream_);
    if (!stirred) co_return false;
  }
}

// Between two requests it has nothing to say but that it goes; a session that asks again then connects anew.
bool Visit::server_is_quiet() {
  std::array<char, 1> unasked;
  return server_->read(unasked) < 0 && errno == EAGAIN;
}

Task<bool> Visit::one_request() {
  RequestHead head;
  std::size_t size = 0;
  asked_ = Asked();
  const bool asked = co_await read_head(head, size);
  if (!asked) co_return false;
  co_await budget();
  const std::int64_t since_us = now_us();
  const auto bindings = place_.bindings_of(to_.domain);
  if (!bindings) co_return false;
  const bool here = head.form == RequestHead::Form::origin && head.host && *head.host == to_.place.host;
  asked_.method = head.method, asked_.path = path_of(head);
  if (!here) co_return co_await turn_away(Refusal::host_differs, "the request is for another host", kForbidden);
  const Objection objection = objection_to(head, *list_, verdict_);
  if (objection.refusal != Refusal::none)
    co_return co_await turn_away(objection.refusal, std::string(objection.detail), kForbidden);
  Replaced replaced = replace(head, to_.place, bindings->all());
  asked_.secrets = names_of(replaced.used);
  if (replaced.refusal != Refusal::none) co_return co_await turn_away(replaced.refusal, std::string(replaced.detail), kForbidden);
  OpenExchange::Asked request;
  const bool last = is_last(head, *list_, verdict_);
  request.text = std::move(replaced.text);
  if (last) request.text.insert(request.text.size() - 2, "Connection: close\r\n");
  request.body = head.body;
  request.minor = head.minor;
  request.keep_alive = head.keep_alive && !last && !may_be_misread(head);
  request.to_head = head.method == "HEAD";
  request.websocket = head.websocket;
  request.searched = replaced.searched;
  ahead_.erase(0, size);
  OpenExchange exchange(*client_, *server_, ahead_, std::move(request), bindings->forms_of(to_.host), *bytes_);
  std::optional<Use> use(std::in_place, *this, exchange, since_us);
  const OpenExchange::End end = co_await exchange.run(std::int64_t{list_->limits.idle_seconds} * 1'000'000);
  use->ended = words_of(end);
  use.reset();
  broken_ = end == OpenExchange::End::broken;
  if (end == OpenExchange::End::bad_answer || end == OpenExchange::End::unreachable || end == OpenExchange::End::bad_request) {
    const std::string_view status = end == OpenExchange::End::bad_request ? "400 Bad Request" : "502 Bad Gateway";
    co_await send(answer_text(status, "caisson: " + to_.host + ": " + std::string(words_of(end)) + "\n"));
    co_await linger();
  }
  co_return end == OpenExchange::End::done&& exchange.goes_on();
}

JsonText Visit::record(std::string_view event) const {
  JsonText out;
  if (!to_.session.empty()) out.string("session", to_.session);
  out.string("domain", to_.domain).string("event", event).string("via", "opened").string("host", to_.host);
  out.number("port", to_.place.port);
  out.number("rule", verdict_.rule).number("generation", place_.generation);
  if (const Rule* rule = list_ ? rule_of(*list_, verdict_.rule) : nullptr; rule != nullptr) out.string("why", rule->why);
  if (!asked_.method.empty()) out.string("method", asked_.method).string("path", asked_.path);
  if (!asked_.secrets.empty()) out.raw("secrets", asked_.secrets);
  return out;
}

Task<bool> Visit::budget() {
  while (!place_.records.take(now_us())) {
    Told again(place_.poll, now_us() + kBudgetUs);
    co_await again;
  }
  co_return true;
}

Task<bool> Visit::turn_away(Refusal refusal, std::string detail, std::string status) {
  if (asked_.method.empty()) co_await budget();  // else it was asked for the request
  const std::string_view what = word(words(Refusal{}), static_cast<std::size_t>(refusal));
  JsonText told = record("refusal");
  told.string("refusal", what).string("detail", detail);
  (void)place_.launcher.tell(Said::record, place_.id, told.text());
  if (status.empty() || !client_ || SSL_is_init_finished(client_->ssl()) == 0) co_return false;
  std::string text = "caisson: " + to_.host + ":" + std::to_string(to_.place.port) + ": refused: ";
  text.append(what).append(": ").append(detail);
  if (const Rule* rule = rule_of(*list_, verdict_.rule); rule != nullptr) {
    if (refusal == Refusal::path) text += ": " + paths_text(rule->paths);
    text += " (rule " + std::to_string(verdict_.rule) + ": " + rule->why + ")";
  }
  text += "\n";
  const bool sent = co_await send(answer_text(status, text));
  if (sent) co_await linger();
  co_return false;
}

Task<bool> Visit::send(std::string text) {
  const std::int64_t until_us = now_us() + kLingerUs;
  while (!text.empty() || !client_->flush()) {
    const ssize_t sent = text.empty() ? -1 : client_->write(text);
    if (sent > 0) text.erase(0, static_cast<std::size_t>(sent));
    if (sent > 0) continue;
    if (errno != EAGAIN) co_return false;
    const bool stirred = co_await Stirred(until_us, client_stream_);
    if (!stirred) co_return false;
  }
  co_return true;
}

// A reset, which follows from what nobody has read, would overtake our last words.
Task<bool> Visit::linger() {
  const std::int64_t until_us = now_us() + kLingerUs;
  client_->close();
  client_stream_.end_of_writing();
  for (std::size_t taken = 0; taken < kMostLingered;) {
    static std::array<char, 4096> ignored;
    const ssize_t got = client_stream_.read(ignored);
    if (got > 0) taken += static_cast<std::size_t>(got);
    if (got > 0) continue;
    if (got == 0 || errno != EAGAIN) co_return got == 0;
    const bool stirred = co_await Stirred(until_us, client_stream_);
    if (!stirred) co_return false;
  }
  co_return false;
}

}  // namespace caisson::egress
