#include "agent/http/connection_impl.h"

#include <algorithm>
#include <memory>

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/read.hpp>

#include "agent/http/failure.h"
#include "agent/http/log.h"
#include "agent/http/target.h"

namespace caisson::http {
namespace {

namespace beast = boost::beast;

// A chunked body on the wire may be this many times its content (sizes, line breaks, extensions).
constexpr std::uint64_t kWireFactor = 8;

constexpr std::string_view kTooSlow =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    "content-length: 99\r\n\r\n"
    R"({"success":false,"message":"The request came too slowly while others wanted its room","data":null})"
    "\n";

// A coroutine that holds the transport, because nobody waits for it.
task<void> close_gently(std::shared_ptr<WebSocket::Transport> transport) {
  co_return co_await transport->close(1001, "server is stopping");
}

}  // namespace

// Whoever holds much itself can do something about it (429); otherwise all of them do (503).
Response no_room(Room room) {
  const bool own = room == Room::part_full;
  Response response =
      error_response(own ? 429 : 503, own ? "This client or workspace has too many bytes under way: read answers and try again"
                                          : "The server holds as many bytes for its clients as it may: try again");
  response.headers = {{"retry-after", "1"}};
  return response;
}

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
  pace_.begin(Pace::At::idle);
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
        raw_head_.assign(buffered().substr(0, end));
        co_return check_head(raw_head_, limits_);
      }
    }
    const bool idle = buffer_.size() == 0;
    if (!idle && pace_.at() == Pace::At::idle) pace_.begin(Pace::At::head);
    if (!idle && !timed_as_head) stream_.expires_after(limits_.head_timeout);
    timed_as_head = timed_as_head || !idle;
    if (idle && state_->stopping) co_return caisson::fail(Code::io, "the server stops");
    auto [error, size] = co_await stream_.async_read_some(buffer_.prepare(kReadStep), as_values);
    if (error) co_return asio_error("read a request", error);
    buffer_.commit(size);
    pace_.moved(size, limits_.pace_window);
  }
}

asio::awaitable<bool> Connection::handle(Head head) {
  pace_.begin(Pace::At::serving);
  reserved_ = 0;
  room_ = Room::granted;
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
  workspace_ = state_->workspace(exchange_->workspace);
  held_ = Budget::Share({payer_, workspace_});
  if (exchange_->websocket) co_return co_await converse(std::move(head));
  const bool too_large = head.body == BodyKind::length && head.content_length > exchange_->body_limit;
  Status body;
  parser_->body_limit(exchange_->body_limit);
  if (!too_large && !exchange_->streamed_body) body = co_await read_body(std::move(head));
  if (too_large || (!body && body.error().code == Code::limit)) {
    Response large = error_response(413, "Request body is larger than " + std::to_string(exchange_->body_limit) + " bytes");
    co_return co_await refuse(std::move(large), true);
  }
  if (room_ != Room::granted) {
    parser_.reset();  // while its client reads why, another has the room
    held_.release();
    Response full = no_room(room_);
    co_return co_await refuse(std::move(full), true);
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
  reserved_ = 0;
  if (streaming_) held_.release();
  if (unread) co_return co_await refuse(std::move(response), true);
  const bool more = co_await answer(std::move(response));
  held_.release();
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
  pace_.begin(Pace::At::body);
  while (!parser_->is_done()) {
    CO_TRY_ASSIGN(const std::size_t size, co_await read_some_body());
    total += size;
    step += size;
    if (total > limit * kWireFactor + kKeepBuffer) co_return caisson::fail(Code::limit, "body");
    if (step >= limits_.body_step) {
      stream_.expires_after(limits_.body_timeout);
      step = 0;
    }
    // Nothing is read meanwhile, so that a client feels it. A body is charged as its string has grown.
    room_ = co_await await_room(parser_->get().body().capacity());
    if (room_ != Room::granted) co_return caisson::fail(Code::io, "no room for the body");
  }
  pace_.begin(Pace::At::serving);
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
  pace_.moved(size, limits_.pace_window);
  co_return size;
}

task<std::string> Connection::read_piece() {
  std::string piece;
  pace_.begin(Pace::At::body);
  while (piece.empty() && !parser_->is_done()) {
    stream_.expires_after(limits_.body_timeout);
    CO_TRY(co_await read_some_body());
    piece.swap(parser_->get().body());
  }
  stream_.expires_never();
  pace_.begin(Pace::At::serving);
  co_return piece;
}

task<void> Connection::reserve(std::size_t bytes) {
  room_ = co_await await_room(bytes);
  if (room_ != Room::granted) co_return caisson::fail(Code::limit, "no room for the parts of a file");
  reserved_ = bytes;
  co_return Status{};
}

task<Lane::Turn> Connection::work(std::size_t bytes) {
  if (bytes <= limits_.uncounted_bytes) co_return Lane::Turn();
  co_return co_await Lane::take(state_->lane, payer_, workspace_);
}

task<Lane::Turn> Connection::answer_of(std::size_t bytes, bool carried_out) {
  const Room room = co_await await_room(held_.bytes() + bytes);
  if (room != Room::granted) {
    if (!carried_out) room_ = room;
    co_return caisson::fail(Code::limit, std::string(kUnheld));
  }
  co_return co_await work(bytes);
}

Room Connection::hold(std::size_t bytes) {
  pace_.waits_for_us = true;  // whoever asks does not pay with itself
  const Room room = held_.resize(bytes > limits_.uncounted_bytes ? bytes : 0);
  pace_.waits_for_us = false;
  return room;
}

asio::awaitable<Room> Connection::await_room(std::size_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + limits_.room_wait;
  Room room = hold(bytes);
  while (room != Room::granted && std::chrono::steady_clock::now() < deadline && stream_.socket().is_open()) {
    pace_.waits_for_us = true;
    co_await sleep_for(limits_.room_poll);
    room = hold(bytes);
    pace_.begin(pace_.at());  // the time in which it waited for us is none in which it stood still
  }
  co_return room;
}

asio::awaitable<bool> Connection::converse(Head head) {
  if (!is_websocket_upgrade(head) || buffer_.size() > 0) {
    Response wanted = error_response(426, "This path speaks WebSocket (version 13) only");
    wanted.headers = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
    wanted.close = true;
    co_return co_await refuse(std::move(wanted), head.body != BodyKind::none);
  }
  stream_.expires_never();
  const std::vector<Budget::PayerPtr> payers{payer_, workspace_};
  Budget::Share in(payers), out(payers);
  auto transport =
      co_await accept_websocket(stream_.release_socket(), std::move(raw_head_), limits_, std::move(in), std::move(out));
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

// One whose request was not answered yet learns why, if it reads: nothing here waits for it.
void Connection::give_up() {
  boost::system::error_code ignored;
  if (pace_.at() == Pace::At::head || pace_.at() == Pace::At::body) {
    stream_.socket().non_blocking(true, ignored);
    stream_.socket().write_some(asio::buffer(kTooSlow), ignored);
  }
  close();
  held_.release();
}

void Connection::stop(bool force) {
  if (const auto socket = socket_.lock(); socket && force) socket->abort();
  else if (socket) spawn(stream_.get_executor(), "websocket close", close_gently(socket));
  else if (force || pace_.at() == Pace::At::idle) close();
}

task<void> run_connection(std::shared_ptr<Server::State> state, asio::ip::tcp::socket socket) {
  Connection connection(std::move(state), std::move(socket));
  co_await connection.run();
  co_return Status{};
}

void stop_connection(Connection& connection, bool force) { connection.stop(force); }

}  // namespace caisson::http
