// The second half of a request: the handler, the watch over its client meanwhile, the answer, and its record.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>

#include "agent/http/connection_impl.h"
#include "agent/http/failure.h"
#include "agent/http/json_text.h"
#include "agent/http/response_head.h"
#include "agent/traces/tracer.h"

namespace caisson::http {

namespace {
constexpr std::chrono::milliseconds kHangupLook{500};
}  // namespace

// The handler runs to its end whatever the client does. Meanwhile a second coroutine watches the client.
asio::awaitable<Response> Connection::serve() {
  using asio::experimental::awaitable_operators::operator||;
  stream_.expires_never();
  asio::awaitable<Response> work = serve_guarded();
  if (exchange_->immediate) co_return co_await std::move(work);  // the watch would cost more than the work
  if (exchange_->request.accepts_event_stream() && !exchange_->relayed) {
    auto beating = std::move(work) || send_heartbeats();
    auto watched = std::move(beating) || watch_peer();
    auto outcome = co_await std::move(watched);
    co_return std::get<0>(std::move(outcome));
  }
  auto watched = std::move(work) || watch_peer();
  auto outcome = co_await std::move(watched);
  co_return std::get<0>(std::move(outcome));
}

asio::awaitable<Response> Connection::serve_guarded() {
  std::exception_ptr thrown;
  try {
    Response response = co_await exchange_->serve(*this);
    keep(response);
    co_return response;
  } catch (...) {
    thrown = std::current_exception();
  }
  co_return internal_failure(thrown, record_.id);
}

// Ends only by cancellation, when the handler is done; returning earlier would cancel the handler.
asio::awaitable<void> Connection::watch_peer() {
  tcp::socket& socket = stream_.socket();
  asio::steady_timer timer(stream_.get_executor());
  boost::system::error_code error;
  ssize_t n = -1;
  do {
    std::tie(error) = co_await socket.async_wait(tcp::socket::wait_read, as_values);
    char byte = 0;
    if (!error) n = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    // The buffer is empty again: a handler that reads its body piece by piece was faster.
  } while (!error && n < 0 && (errno == EAGAIN || errno == EINTR));
  // What came may be the end of TLS as well as a request, and the handler may be reading: only the socket's end is certain.
  if (!error && n > 0 && stream_.tls() != nullptr) {
    error = co_await await_hangup();
    n = error ? -1 : 0;
    if (error == asio::error::connection_reset) error.clear();
  }
  if (!error) {
    peer_->gone = n <= 0;
    if (n > 0) {  // the next request, pipelined: from here on only a reset shows
      std::tie(error) = co_await socket.async_wait(tcp::socket::wait_error, as_values);
    } else if (n == 0) {
      // A client that only closed its sending half may still read the answer, but it may not hold the slot for ever.
      timer.expires_after(limits_.gone_grace);
      std::tie(error) = co_await timer.async_wait(as_values);
    }
    if (!error) {
      peer_->gone = true;
      close();
    }
  }
  timer.expires_at(asio::steady_timer::time_point::max());
  co_await timer.async_wait(as_values);
}

// Until the client has closed its sending half, or (connection_reset) all of it.
asio::awaitable<boost::system::error_code> Connection::await_hangup() {
  while (stream_.socket().is_open()) {
    pollfd look{.fd = stream_.socket().native_handle(), .events = POLLRDHUP, .revents = 0};
    if (::poll(&look, 1, 0) > 0 && (look.revents & POLLERR) != 0) co_return asio::error::connection_reset;
    if ((look.revents & POLLRDHUP) != 0) co_return boost::system::error_code();
    co_await sleep_for(kHangupLook);
  }
  co_return asio::error::operation_aborted;
}

asio::awaitable<void> Connection::send_heartbeats() {
  while (true) {
    co_await sleep_for(limits_.heartbeat);
    if (streaming_ && !unsent_ && !sent_since_beat_)
      (void)co_await write(": keep-alive\n\n");  // the handler sees a dead client itself
    sent_since_beat_ = false;
  }
}

task<void> Connection::start(std::string content_type) {
  if (streaming_) co_return caisson::fail(Code::internal, "the response has begun already");
  Response response;
  response.content_type = std::move(content_type);
  response.headers = exchange_->response_headers;
  const HeadOptions options{
      .minor_version = minor_version_, .keep_alive = goes_on() && minor_version_ == 1, .request_id = record_.id};
  std::string head = response_head(response, options);
  record_.status = response.status;
  streaming_ = true;
  co_return co_await write_all(std::move(head));
}

task<void> Connection::start_sized(Response head, std::uint64_t length) {
  if (streaming_) co_return caisson::fail(Code::internal, "the response has begun already");
  head.headers.insert(head.headers.end(), exchange_->response_headers.begin(), exchange_->response_headers.end());
  std::string text = response_head(head, {minor_version_, goes_on(), length, record_.id});
  record_.status = head.status;
  streaming_ = true;
  unsent_ = method_ == Method::head ? 0 : length;
  co_return co_await write_all(std::move(text));
}

task<void> Connection::start_relayed(RelayedHead head, std::string first) {
  if (streaming_) co_return caisson::fail(Code::internal, "the response has begun already");
  head.headers.insert(head.headers.end(), exchange_->response_headers.begin(), exchange_->response_headers.end());
  std::erase_if(head.headers, [](const auto& header) { return header.first == "x-request-id"; });  // ours is in the log
  const bool bodiless = head.bodiless || method_ == Method::head;
  const bool until_close = !head.length && !bodiless && minor_version_ == 0;
  const HeadOptions options{.minor_version = minor_version_, .keep_alive = goes_on() && !until_close, .request_id = record_.id};
  std::string text = relayed_head(head, options);
  record_.status = head.status;
  {
    const AsyncLock::Held held = co_await write_lock_.acquire();  // the body's reader may be writing 100 Continue
    streaming_ = true;
    if (bodiless) unsent_ = 0;
    else if (head.length) unsent_ = *head.length;
    if (unsent_) {
      if (first.size() > *unsent_) co_return caisson::fail(Code::internal, "more bytes than were announced");
      *unsent_ -= first.size();
      co_return co_await write_all(std::move(text), first);
    }
    CO_TRY(co_await write_all(std::move(text)));
  }
  co_return co_await write(std::move(first));
}

task<void> Connection::write(std::string bytes) {
  if (bytes.empty() || method_ == Method::head) co_return Status{};
  if (unsent_) {
    if (bytes.size() > *unsent_) co_return caisson::fail(Code::internal, "more bytes than were announced");
    *unsent_ -= bytes.size();
    co_return co_await write_all("", bytes);
  }
  const AsyncLock::Held held = co_await write_lock_.acquire();
  if (hold(std::max(reserved_, bytes.capacity())) != Room::granted) co_return caisson::fail(Code::io, "no room for an event");
  char size[20] = "";
  if (minor_version_ == 1) std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  if (minor_version_ == 1) bytes += "\r\n";
  std::string prefix = size;
  writing_piece_ = sent_since_beat_ = true;
  Status written = co_await write_all(std::move(prefix), bytes);
  writing_piece_ = !written;
  (void)hold(reserved_);
  co_return written;
}

namespace {

// The request has been carried out, but its answer has no room. GET and HEAD can be repeated without harm, so they get 429 or
// 503; every other method gets an answer that no client takes as a reason to repeat the request.
Response unheld(Room room, Method method) {
  if (method == Method::get || method == Method::head) return no_room(room);
  return fail(kUnheld);
}

}  // namespace

// At once, without waiting for room: a thousand finished answers that wait to be counted would fill the memory.
void Connection::keep(Response& response) {
  if (streaming_) return;
  if (room_ != Room::granted) response = no_room(room_);
  if (lost_) response = credential_ended();
  const std::size_t size = response.values ? weight(*response.values) : response.body.capacity();
  if (const Room room = hold(size); room != Room::granted) response = unheld(room, method_);
}

asio::awaitable<void> Connection::make_text(Response* response) {
  const Lane::Turn turn = co_await Lane::take(state_->lane, payer_, workspace_);
  Room room = Room::granted;
  std::string text;
  text.reserve(held_.bytes());
  JsonText parts(*response->values);
  while (room == Room::granted && parts.append_to(text)) {
    co_await pause();
    room = hold(std::max(held_.bytes(), text.capacity()));
  }
  if (room == Room::granted) {
    response->body = std::move(text);
    response->values.reset();
  } else {
    Pairs headers = std::move(response->headers);
    *response = unheld(room, method_);
    response->headers.insert(response->headers.end(), headers.begin(), headers.end());
  }
}

asio::awaitable<bool> Connection::answer(Response response) {
  if (!stream_.socket().is_open()) co_return false;
  if (unsent_) co_return *unsent_ == 0 && goes_on();
  if (streaming_) {
    // A piece that was cut by the end of the handler leaves the framing open: only closing is honest then.
    if (writing_piece_ || minor_version_ == 0) co_return false;
    const Status ended = co_await write_all("0\r\n\r\n");
    co_return ended.has_value() && goes_on();
  }
  if (response.close) keep_alive_ = false;
  if (response.values) co_await make_text(&response);
  co_await compress(&response);
  (void)hold(response.body.capacity());  // not more than was announced
  const bool more = goes_on();
  std::string head = response_head(response, {minor_version_, more, response.body.size(), record_.id});
  record_.status = response.status;
  const std::string_view body = method_ == Method::head ? std::string_view() : std::string_view(response.body);
  const Status written = co_await write_all(std::move(head), body);
  co_return written.has_value() && more;
}

// What the kernel takes without waiting, which is most answers: no timer, no turn of the loop. Only once, so that a fast reader
// of a large answer does not hold up the others. An error shows again in the write that waits.
std::size_t Connection::write_at_once(std::string_view head, std::string_view body) {
  if (stream_.tls() != nullptr) return 0;  // the bytes of its socket are not these
  boost::system::error_code error;
  tcp::socket& socket = stream_.socket();
  if (!socket.non_blocking()) socket.non_blocking(true, error);
  if (error) return 0;
  const std::array<asio::const_buffer, 2> parts{asio::buffer(head), asio::buffer(body)};
  const std::size_t size = socket.write_some(parts, error);
  if (size == 0) return 0;
  pace_.moved(size, limits_.pace_window);
  record_.bytes += size;
  return size;
}

// `body` must live until this returns; callers hold it in their frame. Each write is one call of the kernel's, so that the
// client's pace is known.
task<void> Connection::write_all(std::string head, std::string_view body) {
  std::size_t step = write_at_once(head, body);
  if (step == head.size() + body.size()) co_return Status{};
  const Pace::At before = pace_.at();
  pace_.begin(Pace::At::answer);
  stream_.expires_after(limits_.write_timeout);
  std::string_view first = head;
  first.remove_prefix(std::min(step, head.size()));
  body.remove_prefix(step - (head.size() - first.size()));
  while (!first.empty() || !body.empty()) {
    const std::array<asio::const_buffer, 2> parts{asio::buffer(first), asio::buffer(body)};
    auto [error, size] = co_await stream_.async_write_some(parts, as_values);
    if (error) co_return asio_error("write a response", error);
    pace_.moved(size, limits_.pace_window);
    record_.bytes += size;
    const std::size_t of_head = std::min(size, first.size());
    first.remove_prefix(of_head);
    body.remove_prefix(size - of_head);
    step += size;
    if (step < limits_.write_step) continue;
    stream_.expires_after(limits_.write_timeout);
    step = 0;
  }
  stream_.expires_never();
  pace_.begin(before);
  co_return Status{};
}

// Closing with unread input makes the kernel send a reset, which can destroy the answer before the client reads it.
asio::awaitable<void> Connection::linger() {
  boost::system::error_code ignored;
  if (!stream_.is_open()) co_return;
  finish();
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  task<void> rest = throw_away();
  state_->limit_lingering();
  pace_.begin(Pace::At::idle);
  lingering_ = true;
  ++state_->lingering;
  (void)co_await with_timeout(std::move(rest), limits_.linger, "client that was refused");
  --state_->lingering;
}

task<void> Connection::throw_away() {
  for (std::size_t read = 0; read < 16 * 1024 * 1024;) {
    auto [error] = co_await stream_.socket().async_wait(tcp::socket::wait_read, as_values);
    if (error) break;
    // MSG_TRUNC: the kernel drops the bytes and copies nothing.
    const ssize_t n = ::recv(stream_.socket().native_handle(), nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (n > 0) read += static_cast<std::size_t>(n);
  }
  co_return Status{};
}

namespace {

// Unguessable, so that no client can ask after another's. Asking the kernel once for 32 of them is cheaper than for each.
std::string next_id() {
  static constexpr char kDigits[] = "0123456789abcdef";
  static std::array<unsigned char, 256> pool;  // a whole: getrandom() gives no less of so few bytes
  static std::size_t left = 0;
  if (left == 0) {
    if (::getrandom(pool.data(), pool.size(), 0) != static_cast<ssize_t>(pool.size())) std::abort();
    left = pool.size();
  }
  std::string id;
  for (int i = 0; i < 8; ++i) {
    const unsigned char byte = pool[--left];
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15];
  }
  return id;
}

}  // namespace

void Connection::begin_record(const Head& head) {
  record_ = {.began = std::chrono::steady_clock::now(),
             .id = next_id(),
             .remote = remote_,
             .scheme = stream_.tls() != nullptr ? "https" : "http",
             .method = head.method,
             .path = {},
             .user_agent = {},
             .workspace = {},
             .wanted = state_->access_log.on() && !is_for_probes()};
  if (!record_.wanted) return;
  for (const auto& [name, value] : head.headers)
    if (name == "user-agent") record_.user_agent = value;
}

// Two `traceparent` headers are ignored, because either could be meant. Several `tracestate` headers form one list (W3C Trace
// Context 3.3).
void Connection::begin_span(Request& request) {
  if (state_->tracer == nullptr) return;
  std::string_view parent;
  std::string state;
  std::size_t parents = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == "traceparent" && ++parents == 1) parent = value;
    if (name == "tracestate") state.append(state.empty() ? "" : ",").append(value);
  }
  record_.span = state_->tracer->begin(parents == 1 ? parent : "", state);
  if (!record_.span) return;
  traces::Span& span = *record_.span;
  span.method = request.verb;
  span.scheme = request.scheme;
  span.path = request.path;
  span.request_id = request.id;
  request.span = record_.span;
}

void Connection::end_span() {
  if (!record_.span) return;
  record_.span->status = record_.status;
  record_.span->workspace = record_.workspace;
  state_->tracer->end(*std::exchange(record_.span, nullptr));
}

void Connection::end_record() {
  end_span();
  if (!record_.wanted) return;
  const auto took = std::chrono::steady_clock::now() - record_.began;
  state_->access_log.add({.id = record_.id,
                          .remote = record_.remote,
                          .scheme = record_.scheme,
                          .method = record_.method,
                          .path = record_.path,
                          .user_agent = record_.user_agent,
                          .workspace = record_.workspace,
                          .status = record_.status,
                          .port = record_.port,
                          .bytes = record_.bytes,
                          .took = std::chrono::duration_cast<std::chrono::microseconds>(took)});
}

}  // namespace caisson::http
