#include "agent/http/connection.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <tuple>

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "agent/http/append_body.h"
#include "agent/http/async_lock.h"
#include "agent/http/failure.h"
#include "agent/http/framing.h"
#include "agent/http/log.h"
#include "agent/http/response_head.h"
#include "agent/http/target.h"
#include "agent/http/websocket_accept.h"

namespace caisson::http {
namespace {

namespace beast = boost::beast;
using asio::ip::tcp;
using Parser = beast::http::request_parser<AppendBody>;

// A chunked body on the wire may be this many times its content (sizes, line breaks, extensions).
constexpr std::uint64_t kWireFactor = 8;
constexpr std::size_t kReadStep = 4096;
constexpr std::size_t kKeepBuffer = 64 * 1024;

}  // namespace

class Connection final : public StreamWriter {
 public:
  Connection(std::shared_ptr<Server::State> state, tcp::socket socket)
      : state_(std::move(state)), limits_(state_->limits), stream_(std::move(socket)), write_lock_(stream_.get_executor()) {
    state_->open.push_back(this);
    boost::system::error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    stream_.socket().set_option(asio::socket_base::keep_alive(true), ignored);
    if (const auto peer = stream_.socket().remote_endpoint(ignored); !ignored) remote_ = peer.address().to_string();
  }
  ~Connection() override { std::erase(state_->open, this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  asio::awaitable<void> run();
  void stop(bool force);

  task<void> start(std::string content_type) override;
  task<void> write(std::string bytes) override;
  task<void> start_sized(Response head, std::uint64_t length) override;
  task<std::string> read_piece() override;

 private:
  // The answers bool: whether the connection goes on to its next request.
  task<Head> read_head(bool first);
  asio::awaitable<bool> handle(Head head);
  asio::awaitable<bool> handle_admitted(Head head);
  asio::awaitable<bool> refuse(Response response, bool unread_body);
  asio::awaitable<bool> converse(Head head);
  Status feed_head(const Head& head);
  task<void> read_body(Head head);
  task<std::size_t> read_some_body();
  asio::awaitable<Response> serve();
  asio::awaitable<Response> serve_guarded();
  asio::awaitable<void> watch_peer();
  asio::awaitable<void> send_heartbeats();
  asio::awaitable<bool> answer(Response response);
  task<void> write_all(std::string head, std::string_view body = {});
  asio::awaitable<void> linger();
  [[nodiscard]] std::string_view buffered() const { return {static_cast<const char*>(buffer_.data().data()), buffer_.size()}; }
  [[nodiscard]] bool goes_on() const { return keep_alive_ && !state_->stopping; }
  void close();

  std::shared_ptr<Server::State> state_;
  const Limits limits_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kReadStep + 2 * kKeepBuffer};
  AsyncLock write_lock_;
  std::string remote_;
  bool idle_ = true;  // between requests, nothing of the next one read

  // The request under way.
  std::string raw_head_;
  std::unique_ptr<Parser> parser_;
  std::unique_ptr<Exchange> exchange_;
  std::shared_ptr<Peer> peer_;
  std::weak_ptr<WebSocket::Transport> socket_;
  Method method_ = Method::get;
  int minor_version_ = 1;
  bool keep_alive_ = true;
  bool streaming_ = false;      // an event stream has sent its head
  bool writing_piece_ = false;  // inside a piece of it
  bool sent_since_beat_ = false;
  bool expects_continue_ = false;
  std::optional<std::uint64_t> unsent_;  // of a body whose length was told
};

namespace {

// A coroutine that holds the transport, because nobody waits for it.
task<void> close_gently(std::shared_ptr<WebSocket::Transport> transport) {
  co_return co_await transport->close(1001, "server is stopping");
}

}  // namespace

asio::awaitable<void> Connection::run() {
  for (bool first = true;; first = false) {
    auto head = co_await read_head(first);
    if (!head) {
      if (head.error().code != Code::invalid_argument) co_return;  // closed or too slow: nobody to answer
      keep_alive_ = false;
      Response bad = error_response(400, "Bad Request: " + head.error().what);
      co_await refuse(std::move(bad), true);
      co_return;
    }
    if (!co_await handle(std::move(*head))) co_return;
  }
}

task<Head> Connection::read_head(bool first) {
  stream_.expires_after(first ? limits_.head_timeout : limits_.idle_timeout);
  bool timed_as_head = first, may_skip_line = true;
  std::size_t scanned = 0;
  while (true) {
    // RFC 9112 2.2: one empty line before a request is ignored (old clients end a body with it).
    if (may_skip_line && buffered().starts_with("\r\n")) {
      buffer_.consume(2);
      may_skip_line = false;
    }
    if (!may_skip_line || buffered() != "\r") {
      CO_TRY_ASSIGN(const std::size_t end, find_head_end(buffered(), scanned, limits_));
      if (end > 0) {
        idle_ = false;
        raw_head_.assign(buffered().substr(0, end));
        co_return check_head(raw_head_, limits_);
      }
    }
    idle_ = buffer_.size() == 0;
    if (!idle_ && !timed_as_head) stream_.expires_after(limits_.head_timeout);
    timed_as_head = timed_as_head || !idle_;
    if (idle_ && state_->stopping) co_return caisson::fail(Code::io, "the server stops");
    auto [error, size] = co_await stream_.async_read_some(buffer_.prepare(kReadStep), as_values);
    if (error) co_return asio_error("read a request", error);
    buffer_.commit(size);
  }
}

asio::awaitable<bool> Connection::handle(Head head) {
  method_ = method_from(head.method);
  minor_version_ = head.minor_version;
  keep_alive_ = head.keep_alive;
  streaming_ = writing_piece_ = false;
  unsent_.reset();
  expects_continue_ = head.expect_continue;
  const bool has_body = head.body != BodyKind::none;
  auto target = decode_target(head.target);
  Status fed = feed_head(head);
  if (!target || !fed) {
    keep_alive_ = false;
    Response bad = error_response(400, "Bad Request: " + (target ? fed.error().what : target.error().what));
    co_return co_await refuse(std::move(bad), true);
  }
  Request request;
  request.method = method_;
  request.minor_version = minor_version_;
  request.path = std::move(target->path);
  request.segments = std::move(target->segments);
  request.query = std::move(target->query);
  request.headers = head.headers;
  request.remote = remote_;
  peer_ = request.peer;

  Admission admission = co_await state_->application.admit(std::move(request));
  if (Response* refusal = std::get_if<Response>(&admission)) {
    Response response = std::move(*refusal);
    co_return co_await refuse(std::move(response), has_body);
  }
  exchange_ = std::move(std::get<std::unique_ptr<Exchange>>(admission));
  co_return co_await handle_admitted(std::move(head));
}

asio::awaitable<bool> Connection::handle_admitted(Head head) {
  if (exchange_->websocket) co_return co_await converse(std::move(head));
  const bool too_large = head.body == BodyKind::length && head.content_length > exchange_->body_limit;
  Status body;
  parser_->body_limit(exchange_->body_limit);
  if (!too_large && !exchange_->streamed_body) body = co_await read_body(std::move(head));
  if (too_large || (!body && body.error().code == Code::limit)) {
    Response large = error_response(413, "Request body is larger than " + std::to_string(exchange_->body_limit) + " bytes");
    co_return co_await refuse(std::move(large), true);
  }
  if (!body) {
    if (body.error().code != Code::invalid_argument) co_return false;
    Response bad = error_response(400, "Bad Request: " + body.error().what);
    co_return co_await refuse(std::move(bad), true);
  }
  exchange_->request.body = std::move(parser_->get().body());
  Response response = co_await serve();
  const bool unread = !parser_->is_done();
  parser_.reset();
  response.headers.insert(response.headers.end(), exchange_->response_headers.begin(), exchange_->response_headers.end());
  exchange_.reset();
  if (unread) co_return co_await refuse(std::move(response), true);
  const bool more = co_await answer(std::move(response));
  if (more && buffer_.capacity() > kKeepBuffer) buffer_.shrink_to_fit();
  co_return more;
}

// Answers without serving. What is unread of the request cannot be told from a next one, so the connection ends.
asio::awaitable<bool> Connection::refuse(Response response, bool unread_body) {
  if (unread_body) keep_alive_ = false;
  const bool more = co_await answer(std::move(response));
  if (!more && unread_body) co_await linger();
  co_return more;
}

// Beast reads the head a second time. It must find the same framing as we did, or the request is refused.
Status Connection::feed_head(const Head& head) {
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
  parser_->body_limit(boost::none);  // set once the route is known
  boost::system::error_code error;
  const std::size_t used = parser_->put(asio::buffer(raw_head_), error);
  if (error && error != beast::http::error::need_more) return caisson::fail(Code::invalid_argument, "malformed request head");
  const bool same = used == raw_head_.size() && parser_->is_header_done() &&
                    parser_->chunked() == (head.body == BodyKind::chunked) &&
                    (head.body == BodyKind::chunked || parser_->content_length().value_or(0) == head.content_length);
  if (!same) return caisson::fail(Code::invalid_argument, "ambiguous request framing");
  buffer_.consume(raw_head_.size());
  return {};
}

task<void> Connection::read_body(Head head) {
  const std::uint64_t limit = exchange_->body_limit;
  std::uint64_t total = 0;
  std::size_t step = 0;
  stream_.expires_after(limits_.body_timeout);
  while (!parser_->is_done()) {
    CO_TRY_ASSIGN(const std::size_t size, co_await read_some_body());
    total += size;
    step += size;
    if (total > limit * kWireFactor + kKeepBuffer) co_return caisson::fail(Code::limit, "body");
    if (step >= limits_.body_step) {
      stream_.expires_after(limits_.body_timeout);
      step = 0;
    }
  }
  co_return Status{};
}

task<std::size_t> Connection::read_some_body() {
  if (std::exchange(expects_continue_, false) && buffer_.size() == 0) {
    CO_TRY(co_await write_all("HTTP/1.1 100 Continue\r\n\r\n"));
    stream_.expires_after(limits_.body_timeout);
  }
  auto [error, size] = co_await beast::http::async_read_some(stream_, buffer_, *parser_, as_values);
  if (error == beast::http::error::body_limit) co_return caisson::fail(Code::limit, "body");
  if (error == beast::http::error::end_of_stream || error == beast::http::error::partial_message)
    co_return caisson::fail(Code::io, "the client closed inside a body");
  if (error && error.category() == beast::http::make_error_code(beast::http::error::bad_chunk).category())
    co_return caisson::fail(Code::invalid_argument, "malformed body: " + error.message());
  if (error) co_return asio_error("read a body", error);
  co_return size;
}

task<std::string> Connection::read_piece() {
  std::string piece;
  while (piece.empty() && !parser_->is_done()) {
    stream_.expires_after(limits_.body_timeout);
    CO_TRY(co_await read_some_body());
    piece.swap(parser_->get().body());
  }
  stream_.expires_never();
  co_return piece;
}

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
    co_return co_await exchange_->serve(*this);
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
  char size[20] = "";
  if (minor_version_ == 1) std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  if (minor_version_ == 1) bytes += "\r\n";
  std::string prefix = size;
  writing_piece_ = sent_since_beat_ = true;
  Status written = co_await write_all(std::move(prefix), bytes);
  writing_piece_ = !written;
  co_return written;
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
  const bool more = goes_on();
  std::string head = response_head(response, {minor_version_, more, response.body.size()});
  const std::string_view body = method_ == Method::head ? std::string_view() : std::string_view(response.body);
  const Status written = co_await write_all(std::move(head), body);
  co_return written.has_value() && more;
}

// `body` must live until this returns; callers hold it in their frame.
task<void> Connection::write_all(std::string head, std::string_view body) {
  std::size_t done = 0;
  do {
    const std::size_t step = std::min(body.size() - done, limits_.write_step);
    const std::array<asio::const_buffer, 2> parts{asio::buffer(head), asio::buffer(body.substr(done, step))};
    stream_.expires_after(limits_.write_timeout);
    auto [error, size] = co_await asio::async_write(stream_, parts, as_values);
    if (error) co_return asio_error("write a response", error);
    head.clear();
    done += step;
  } while (done < body.size());
  stream_.expires_never();
  co_return Status{};
}

// Closing with unread input makes the kernel send a reset, which can destroy the answer before the client reads it.
asio::awaitable<void> Connection::linger() {
  boost::system::error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.expires_after(limits_.linger);
  buffer_.clear();
  for (std::size_t read = 0; read < 16 * 1024 * 1024;) {
    auto [error, size] = co_await stream_.async_read_some(buffer_.prepare(kKeepBuffer), as_values);
    if (error) co_return;
    read += size;
  }
}

asio::awaitable<bool> Connection::converse(Head head) {
  if (!is_websocket_upgrade(head) || buffer_.size() > 0) {
    Response wanted = error_response(426, "This path speaks WebSocket (version 13) only");
    wanted.headers = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
    wanted.close = true;
    co_return co_await refuse(std::move(wanted), head.body != BodyKind::none);
  }
  stream_.expires_never();
  auto transport = co_await accept_websocket(stream_.release_socket(), std::move(raw_head_), limits_);
  if (!transport) co_return false;
  socket_ = *transport;
  if (state_->stopping) stop(false);  // the stop came during the handshake
  try {
    const Status ended = co_await exchange_->converse(WebSocket(*transport));
    if (!ended && ended.error().code == Code::internal) log::error("websocket: " + ended.error().text());
  } catch (const std::exception& e) {
    log::error(std::string("websocket: ") + e.what());
  }
  (void)co_await (*transport)->close(1000, "");  // bounded by Beast's handshake timeout; a dead client is cut below
  (*transport)->abort();
  co_return false;
}

void Connection::close() {
  boost::system::error_code ignored;
  stream_.socket().close(ignored);
}

void Connection::stop(bool force) {
  if (const auto socket = socket_.lock(); socket && force) socket->abort();
  else if (socket) spawn(stream_.get_executor(), "websocket close", close_gently(socket));
  else if (force || idle_) close();
}

task<void> run_connection(std::shared_ptr<Server::State> state, tcp::socket socket) {
  Connection connection(std::move(state), std::move(socket));
  co_await connection.run();
  co_return Status{};
}

void stop_connection(Connection& connection, bool force) { connection.stop(force); }

}  // namespace caisson::http
