#include "launcher/egress/opener/open_exchange.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "launcher/egress/secret/charset.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kPart = 16 * 1024, kATurn = 256 * 1024;
constexpr unsigned kMostTurns = 64;
constexpr std::int64_t kBudgetUs = 20'000;

std::string hex(std::size_t number) {
  char digits[2 * sizeof number];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, 16).ptr};
}

// Those that would lead the session to another way to the same server, where its placeholders are not replaced.
bool is_kept_back(const Field& field) { return field.hop_by_hop || same_word(field.name, "alt-svc"); }

// Whether a secret in the answer's body would stand there as it is: not compressed, not cut by a part that nobody can have asked
// for, and in characters that have ASCII in it.
bool is_readable(const AnswerHead& head) {
  return head.status != 206 && std::ranges::all_of(head.fields, [](const Field& field) {
           if (same_word(field.name, "content-type")) return has_ascii(field.value);
           return !same_word(field.name, "content-encoding") || field.value.empty() || same_word(field.value, "identity");
         });
}

// What has come, up to what one part may be; 0: the end; -1 as Tls::read().
ssize_t append(Tls& from, std::string& to) {
  static std::array<char, kPart> buffer;
  const ssize_t got = from.read(buffer);
  if (got > 0) to.append(buffer.data(), static_cast<std::size_t>(got));
  return got;
}

}  // namespace

OpenExchange::OpenExchange(Tls& client, Tls& server, std::string& ahead, Asked asked, const Forms& forms, ByteBudget& bytes)
    : client_(client), server_(server), ahead_(ahead), asked_(std::move(asked)), forms_(forms), bytes_(bytes), scrubber_(forms) {
  to_server_ = asked_.text;
  request_ = BodyEnd(asked_.body);
}

Task<OpenExchange::End> OpenExchange::run(std::int64_t idle_us) {
  Poll& poll = client_.stream().poll();
  unsigned turns = 0;
  for (std::uint64_t at_pause = 0;;) {
    // As much as a turn may move, so that no more goes than may.
    while (bytes_.left(poll.now_us()) < 2 * kPart) {
      Told budget(poll, poll.now_us() + kBudgetUs);
      co_await budget;
    }
    const std::uint64_t before = up_ + down_;
    const Next next = turn();
    bytes_.spend(up_ + down_ - before);
    ++turns;
    if (next == Next::over) co_return end_;
    if (next == Next::wait) {
      const bool stirred = co_await Stirred(poll.now_us() + idle_us, client_.stream(), &server_.stream());
      if (!stirred) co_return passed_on_ ? End::broken : End::idle;
    } else if (turns >= kMostTurns || up_ + down_ - at_pause >= kATurn) {
      // A fast server and a fast client would keep the loop from all others, and so would records of a byte each.
      at_pause = up_ + down_, turns = 0;
      Told pause(poll, poll.now_us());
      co_await pause;
    }
  }
}

OpenExchange::Next OpenExchange::turn() {
  const Next request = move_request();
  if (request == Next::over) return request;
  const Next answer = move_answer();
  if (answer == Next::over) return answer;
  return request == Next::again || answer == Next::again ? Next::again : Next::wait;
}

OpenExchange::Next OpenExchange::move_request() {
  if (request_lost_) return Next::wait;
  if (!to_server_.empty() || !server_.flush()) {
    const ssize_t sent = to_server_.empty() ? -1 : server_.write(to_server_);
    if (sent < 0 && errno == EAGAIN) return Next::wait;
    // A server that takes no more of a request may have answered it.
    if (sent < 0) return request_lost_ = true, Next::again;
    to_server_.erase(0, static_cast<std::size_t>(sent));
    up_ += static_cast<std::uint64_t>(sent);
    return Next::again;
  }
  if (request_.ended() && !switched_) return Next::wait;
  if (ahead_.empty()) {
    const ssize_t got = append(client_, ahead_);
    if (got < 0 && errno == EAGAIN) return Next::wait;
    if (got <= 0) return over(switched_ ? End::done : End::broken);
  }
  if (switched_) return to_server_ = std::exchange(ahead_, {}), Next::again;
  const Outcome read = request_.take(ahead_);
  if (read.refused()) return over(passed_on_ ? End::broken : End::bad_request);
  const std::size_t size = read.done() ? read.size : ahead_.size();
  to_server_.assign(ahead_, 0, size);
  ahead_.erase(0, size);
  return Next::again;
}

OpenExchange::Next OpenExchange::move_answer() {
  if (!to_client_.empty() || !client_.flush()) {
    const ssize_t sent = to_client_.empty() ? -1 : client_.write(to_client_);
    if (sent < 0) return errno == EAGAIN ? Next::wait : over(End::broken);
    to_client_.erase(0, static_cast<std::size_t>(sent));
    down_ += static_cast<std::uint64_t>(sent);
    return Next::again;
  }
  if (answer_over_) return over(End::done);
  return read_answer();
}

OpenExchange::Next OpenExchange::read_answer() {
  if (answered_ && !from_server_.empty()) return take_body(std::exchange(from_server_, {}));
  if (!answered_ && !from_server_.empty())
    if (const Outcome read = read_answer_head(from_server_, asked_.to_head, scan_, head_); read.step != Outcome::Step::need_more)
      return take_head(read);
  const ssize_t got = append(server_, from_server_);
  if (got > 0) return Next::again;
  if (got < 0 && errno == EAGAIN) return Next::wait;
  if (got == 0 && answered_ && kind_ == BodyKind::until_close) return end_body(), Next::again;
  return over(passed_on_ ? End::broken : from_server_.empty() ? End::unreachable : End::bad_answer);
}

OpenExchange::Next OpenExchange::take_head(const Outcome& read) {
  const bool misread = asked_.minor == 0 && (head_.body.kind == BodyKind::chunked || head_.interim);
  if (read.refused() || misread || (head_.switches && !asked_.websocket) || (asked_.searched && !is_readable(head_)))
    return over(passed_on_ ? End::broken : End::bad_answer);
  answered_ = !head_.interim;
  status_ = head_.status;
  switched_ = head_.switches;
  kind_ = switched_ ? BodyKind::until_close : head_.body.kind;
  answer_ = BodyEnd(head_.body);
  const bool bodiless = answered_ && kind_ != BodyKind::until_close && answer_.ended();
  // A request whose end has not come yet would be read as the next one, and what nobody has asked for as the next one's answer.
  goes_on_ = answered_ && asked_.keep_alive && head_.keep_alive && request_.ended() && to_server_.empty() &&
             !(bodiless && from_server_.size() > read.size);
  put_head(head_);
  passed_on_ = true;
  from_server_.erase(0, read.size);
  scan_ = {};
  if (bodiless) end_body();
  return Next::again;
}

// Only what is passed on is searched: a status line's reason and the fields.
void OpenExchange::put_head(const AnswerHead& head) {
  to_client_ += "HTTP/1.1 " + std::to_string(head.status) + " " + scrubbed_text(head.reason) + "\r\n";
  for (const Field& field : head.fields)
    if (!is_kept_back(field)) to_client_ += scrubbed_text(field.name) + ": " + scrubbed_text(field.value) + "\r\n";
  if (head.body.kind == BodyKind::chunked) to_client_ += "Transfer-Encoding: chunked\r\n";
  if (head.switches) to_client_ += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  else if (!head.interim && !goes_on_) to_client_ += "Connection: close\r\n";
  else if (!head.interim && asked_.minor == 0) to_client_ += "Connection: keep-alive\r\n";
  to_client_ += "\r\n";
}

std::string OpenExchange::scrubbed_text(std::string_view text) {
  std::string out;
  Scrubber scrubber(forms_);
  scrubber.take(text, out);
  scrubber.end(out);
  in_heads_ += scrubber.found();
  return out;
}

// After a switch it is no HTTP: what a server sends there is relayed, as what the session sends is.
OpenExchange::Next OpenExchange::take_body(std::string_view bytes) {
  if (switched_) return to_client_ += bytes, Next::again;
  std::string content;
  if (kind_ == BodyKind::until_close) {
    scrubber_.take(bytes, content);
    return put(content), Next::again;
  }
  while (!bytes.empty() && !answer_.ended()) {
    if (const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(answer_.certain(), bytes.size())); size > 0) {
      scrubber_.take(bytes.substr(0, size), content);
      answer_.skip(size);
      bytes.remove_prefix(size);
    } else {
      if (answer_.take(bytes.substr(0, 1)).refused()) return over(End::broken);
      bytes.remove_prefix(1);
    }
  }
  put(content);
  // What nobody has asked for: the next answer would be another's.
  if (answer_.ended() && !bytes.empty()) goes_on_ = false;
  if (answer_.ended()) end_body();
  return Next::again;
}

void OpenExchange::put(std::string_view content) {
  if (content.empty()) return;
  if (kind_ == BodyKind::chunked) ((to_client_ += hex(content.size())) += "\r\n").append(content) += "\r\n";
  else to_client_ += content;
}

void OpenExchange::end_body() {
  std::string content;
  scrubber_.end(content);
  put(content);
  if (kind_ == BodyKind::chunked) to_client_ += "0\r\n\r\n";
  answer_over_ = true;
}

}  // namespace caisson::egress
