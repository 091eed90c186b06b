// The second half of a request: the handler, what looks after the client meanwhile, and its answer.
#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>

#include "agent/http/connection_impl.h"
#include "agent/http/failure.h"
#include "agent/http/json_text.h"
#include "agent/http/response_head.h"

namespace caisson::http {

// The handler runs to its end whatever the client does; beside it, someone looks after the client.
asio::awaitable<Response> Connection::serve() {
  using asio::experimental::awaitable_operators::operator||;
  stream_.expires_never();
  asio::awaitable<Response> work = serve_guarded();
  if (exchange_->request.accepts_event_stream()) {
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
  co_return internal_failure(thrown);
}

// Ends only by cancellation, when the handler is done: were it to return earlier, it would cancel the handler.
asio::awaitable<void> Connection::watch_peer() {
  tcp::socket& socket = stream_.socket();
  asio::steady_timer timer(stream_.get_executor());
  boost::system::error_code error;
  ssize_t n = -1;
  do {
    std::tie(error) = co_await socket.async_wait(tcp::socket::wait_read, as_values);
    char byte = 0;
    if (!error) n = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    // Nothing is there any more: a handler that reads its body piece by piece was faster.
  } while (!error && n < 0 && (errno == EAGAIN || errno == EINTR));
  if (!error) {
    peer_->gone = n <= 0;
    if (n > 0) {  // the next request, pipelined: from here on only a reset shows
      std::tie(error) = co_await socket.async_wait(tcp::socket::wait_error, as_values);
    } else if (n == 0) {
      // A client that only closed its sending half may still read the answer. Not for ever: the slot is worth more.
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
  std::string head = response_head(response, {.minor_version = minor_version_, .keep_alive = goes_on() && minor_version_ == 1});
  streaming_ = true;
  co_return co_await write_all(std::move(head));
}

task<void> Connection::start_sized(Response head, std::uint64_t length) {
  if (streaming_) co_return caisson::fail(Code::internal, "the response has begun already");
  head.headers.insert(head.headers.end(), exchange_->response_headers.begin(), exchange_->response_headers.end());
  std::string text = response_head(head, {minor_version_, goes_on(), length});
  streaming_ = true;
  unsent_ = method_ == Method::head ? 0 : length;
  co_return co_await write_all(std::move(text));
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

// At once: a thousand answers that were made already, and wait to be counted, would fill the memory.
void Connection::keep(Response& response) {
  if (streaming_) return;
  if (room_ != Room::granted) response = no_room(room_);
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
  (void)hold(response.body.capacity());  // no more than there was
  const bool more = goes_on();
  std::string head = response_head(response, {minor_version_, more, response.body.size()});
  const std::string_view body = method_ == Method::head ? std::string_view() : std::string_view(response.body);
  const Status written = co_await write_all(std::move(head), body);
  co_return written.has_value() && more;
}

// `body` must live until this returns; callers hold it in their frame. Written as the kernel takes it, so that the pace is known.
task<void> Connection::write_all(std::string head, std::string_view body) {
  const Pace::At before = pace_.at();
  pace_.begin(Pace::At::answer);
  stream_.expires_after(limits_.write_timeout);
  std::size_t step = 0;
  std::string_view first = head;
  while (!first.empty() || !body.empty()) {
    const std::array<asio::const_buffer, 2> parts{asio::buffer(first), asio::buffer(body)};
    auto [error, size] = co_await stream_.async_write_some(parts, as_values);
    if (error) co_return asio_error("write a response", error);
    pace_.moved(size, limits_.pace_window);
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
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  task<void> rest = throw_away();
  (void)co_await with_timeout(std::move(rest), limits_.linger, "client that was refused");
}

task<void> Connection::throw_away() {
  for (std::size_t read = 0; read < 16 * 1024 * 1024;) {
    auto [error] = co_await stream_.socket().async_wait(tcp::socket::wait_read, as_values);
    if (error) break;
    // MSG_TRUNC: the kernel throws it away, nothing is copied.
    const ssize_t n = ::recv(stream_.socket().native_handle(), nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (n > 0) read += static_cast<std::size_t>(n);
  }
  co_return Status{};
}

}  // namespace caisson::http
