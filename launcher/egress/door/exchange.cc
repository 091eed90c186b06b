#include "launcher/egress/door/exchange.h"

#include <array>
#include <cerrno>

namespace caisson::egress {
namespace {

constexpr std::size_t kATurn = 256 * 1024;
constexpr std::int64_t kThrottleUs = 20'000;

void put_fields(std::string& out, const Fields& fields) {
  for (const Field& field : fields)
    if (!field.hop_by_hop && !same_word(field.name, "host")) ((out += field.name) += ": ").append(field.value) += "\r\n";
}

void put_host(std::string& out, const HostPort& place) {
  const auto* address = std::get_if<Address>(&place.host);
  const std::string host = host_text(place.host);
  out += "Host: ";
  out += address != nullptr && address->v6 ? "[" + host + "]" : host;
  if (place.port != 80) out += ":" + std::to_string(place.port);
  out += "\r\n";
}

}  // namespace

std::string request_text(const RequestHead& head, const HostPort& place, bool last) {
  std::string out(head.method);
  ((out += " ") += head.target) += head.minor == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n";
  put_host(out, place);
  put_fields(out, head.fields);
  if (head.body.kind == BodyKind::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (head.websocket) out += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  else if (last) out += "Connection: close\r\n";
  return out += "\r\n";
}

std::string answer_text(const AnswerHead& head, int client_minor, bool keep_alive) {
  std::string out = head.minor == 1 ? "HTTP/1.1 " : "HTTP/1.0 ";
  ((out += std::to_string(head.status)) += " ") += head.reason;
  out += "\r\n";
  put_fields(out, head.fields);
  if (head.body.kind == BodyKind::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (head.switches) out += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  else if (!keep_alive && !head.interim) out += "Connection: close\r\n";
  else if (keep_alive && (client_minor == 0 || head.minor == 0)) out += "Connection: keep-alive\r\n";
  return out += "\r\n";
}

Exchange::Exchange(Connection& connection, Asked asked)
    : connection_(connection),
      asked_(std::move(asked)),
      request_(connection.client, *connection.upstream, connection.ahead, *connection.bytes),
      answer_(*connection.upstream, connection.client, from_server_, *connection.bytes) {
  request_.put(asked_.text);
  request_.set_body(asked_.body);
}

Task<Exchange::End> Exchange::run() {
  Poll& poll = connection_.workspace.house.poll;
  std::uint64_t moved_at_pause = 0;
  for (;;) {
    const Next next = turn();
    if (next == Next::over) co_return end_;
    if (next == Next::wait) {
      const bool stirred =
          co_await Stirred(poll.now_us() + connection_.idle_us(), connection_.client, connection_.upstream.get());
      if (!stirred) co_return sent_some_ ? End::broken : End::late;
    }
    // A fast server and a fast client would keep the loop from all others.
    const bool long_turn = up() + down() - moved_at_pause >= kATurn;
    if (next == Next::throttled || long_turn) {
      moved_at_pause = up() + down();
      Told pause(poll, poll.now_us() + (next == Next::throttled ? kThrottleUs : 0));
      co_await pause;
    }
  }
}

Exchange::Next Exchange::turn() {
  if (connection_.client.broken()) return over(End::client_gone);
  const Next request = move_request();
  if (request == Next::over) return request;
  const Next answer = move_answer();
  if (answer == Next::over) return answer;
  if (request == Next::again || answer == Next::again) return Next::again;
  return request == Next::throttled || answer == Next::throttled ? Next::throttled : Next::wait;
}

Exchange::Next Exchange::move_request() {
  if (request_failed_ || request_.done()) return Next::wait;
  switch (request_.step()) {
    case Transfer::Step::moved:
      return Next::again;
    case Transfer::Step::blocked:
      return Next::wait;
    case Transfer::Step::throttled:
      return Next::throttled;
    case Transfer::Step::wrong:
      return over(sent_some_ ? End::broken : End::bad_request);
    case Transfer::Step::sender_gone:
      return over(End::client_gone);
    case Transfer::Step::failed:
      break;
  }
  // A server that takes no more of the request may have answered it.
  request_failed_ = true;
  return Next::again;
}

Exchange::Next Exchange::move_answer() {
  if (!answered_ && answer_.drained()) return read_head();
  switch (answer_.step()) {
    case Transfer::Step::moved:
      return Next::again;
    case Transfer::Step::throttled:
      return Next::throttled;
    case Transfer::Step::wrong:
    case Transfer::Step::sender_gone:
      return over(End::broken);
    case Transfer::Step::failed:
      return over(End::client_gone);
    case Transfer::Step::blocked:
      break;
  }
  if (!answered_ || !answer_.done()) return Next::wait;
  return over(answer_head_.switches ? End::switched : End::done);
}

Exchange::Next Exchange::read_head() {
  if (const Outcome read = read_answer_head(from_server_, asked_.to_head, scan_, answer_head_);
      read.step != Outcome::Step::need_more)
    return take_head(read);
  Stream& server = *connection_.upstream;
  if (!server.readable()) return Next::wait;
  std::array<char, 4096> buffer;
  const ssize_t got = server.read(buffer);
  if (got > 0) {
    from_server_.append(buffer.data(), static_cast<std::size_t>(got));
    return Next::again;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Next::again;
  if (sent_some_) return over(End::broken);
  return over(asked_.kept && from_server_.empty() ? End::stale : End::unreachable);
}

// An answer in chunks to a client of HTTP/1.0, or a switch that nobody asked for, is one that this client would not understand.
Exchange::Next Exchange::take_head(const Outcome& read) {
  const bool misread = asked_.minor == 0 && (answer_head_.body.kind == BodyKind::chunked || answer_head_.interim);
  if (read.refused() || misread || (answer_head_.switches && !asked_.websocket))
    return over(sent_some_ ? End::broken : End::bad_answer);
  answered_ = !answer_head_.interim;
  // A request whose end has not come yet would be read as the next one.
  client_stays_ = asked_.keep_alive && answer_head_.body.kind != BodyKind::until_close && request_.done();
  answer_.put(answer_text(answer_head_, asked_.minor, client_stays_));
  sent_some_ = true;
  const bool switches = answer_head_.switches;
  from_server_.erase(0, read.size);
  scan_ = {};
  if (switches) answer_.put(std::exchange(from_server_, {}));
  if (answered_) answer_.set_body(answer_head_.body);
  answer_head_.fields.clear(), answer_head_.reason = {};
  return Next::again;
}

}  // namespace caisson::egress
