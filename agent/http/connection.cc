#include "agent/http/connection_impl.h"

#include <algorithm>
#include <memory>

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/read.hpp>

#include "agent/http/compressing.h"
#include "agent/http/failure.h"
#include "agent/http/forwarded.h"
#include "agent/http/log.h"
#include "agent/http/target.h"
#include "agent/traces/span.h"

namespace caisson::http {
namespace {

namespace beast = boost::beast;

// A chunked body on the wire may be this many times its content (sizes, line breaks, extensions).
constexpr std::uint64_t kWireFactor = 8;

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    "content-length: 68\r\n\r\n"
    R"({"success":false,"message":"Too many open connections","data":null})"
    "\n";

constexpr std::string_view kTooSlow =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    "content-length: 99\r\n\r\n"
    R"({"success":false,"message":"The request came too slowly while others wanted its room","data":null})"
    "\n";

// As nginx answers.
constexpr std::string_view kPlain =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 104\r\n\r\n"
    R"({"success":false,"message":"Bad Request: a plain HTTP request was sent to a port of HTTPS","data":null})"
    "\n";

}  // namespace

// 429: this client holds much itself and can release it. 503: the others together hold everything.
Response no_room(Room room) {
  const bool own = room == Room::part_full;
  Response response =
      error_response(own ? 429 : 503, own ? "This client or workspace has too many bytes under way: read answers and try again"
                                          : "The server holds as many bytes for its clients as it may: try again");
  response.headers = {{"retry-after", "1"}};
  return response;
}

// An idle connection until it is over: it gives way to others first, and ends at once when the server stops.
asio::awaitable<bool> Connection::shake_hands(TlsStream tls) {
  stream_.expires_after(is_for_probes() ? limits_.probe_timeout : limits_.handshake_timeout);
  const Status done = co_await tls.handshake();
  if (!done && tls.is_plain()) {
    boost::system::error_code ignored;
    stream_.socket().non_blocking(true, ignored);
    stream_.socket().write_some(asio::buffer(kPlain), ignored);
    co_await linger();
  }
  co_return done.has_value();
}

asio::awaitable<void> Connection::run() {
  if (const TlsStream* tls = stream_.tls(); tls != nullptr && !co_await shake_hands(*tls)) co_return;
  for (bool first = true;; first = false) {
    auto head = co_await read_head(first);
    if (!head) {
      if (head.error().code != Code::invalid_argument) co_return;  // closed or too slow for an answer
      keep_alive_ = false;
      Response bad = error_response(400, "Bad Request: " + head.error().what);
      begin_record({});
      co_await refuse(std::move(bad), true);
      end_record();
      co_return;
    }
    begin_record(*head);
    const bool more = co_await handle(std::move(*head));
    end_record();
    if (!more) co_return;
  }
}

task<Head> Connection::read_head(bool first) {
  const auto first_timeout = is_for_probes() ? limits_.probe_timeout : limits_.head_timeout;
  stream_.expires_after(first ? first_timeout : limits_.idle_timeout);
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
    auto [error, size] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), as_values);
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
  keep_alive_ = head.keep_alive && !is_for_probes();
  streaming_ = writing_piece_ = lost_ = false;
  unsent_.reset();
  expects_continue_ = head.expect_continue;
  const bool has_body = head.body != BodyKind::none;
  takes_gzip_ = accepts_gzip(head.headers);
  auto target = decode_target(head.target);
  Status fed = feed_head(head);
  if (!target || !fed) {
    keep_alive_ = false;
    Response bad = error_response(400, "Bad Request: " + (target ? fed.error().what : target.error().what));
    co_return co_await refuse(std::move(bad), true);
  }
  Request request;
  request.method = method_;
  request.verb = head.method;
  request.target = head.target;
  request.minor_version = minor_version_;
  request.path = std::move(target->path);
  request.segments = std::move(target->segments);
  request.query = std::move(target->query);
  Client client = client_of(head.headers, remote_, stream_.tls() != nullptr, state_->proxies);
  request.connected_from = remote_;
  request.inside = inside_;
  request.remote = record_.remote = std::move(client.remote);
  request.host = std::move(client.host);
  request.scheme = record_.scheme = client.scheme;
  if (!client.proxy_id.empty()) record_.id = client.proxy_id;
  request.id = record_.id;
  record_.path = request.path;
  request.headers = head.headers;
  request.probes_only = is_for_probes();
  peer_ = request.peer;
  begin_span(request);

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
  record_.workspace = exchange_->workspace;
  record_.port = exchange_->port;
  record_.wanted = record_.wanted && exchange_->logged;
  if (record_.span) record_.span->wanted = exchange_->logged;
  const Places::Held place = state_->places.take(*exchange_, limits_);
  if (place.full) {
    Response full = no_place(*place.full);
    co_return co_await refuse(std::move(full), head.body != BodyKind::none);
  }
  if (exchange_->websocket) co_return co_await converse(std::move(head));
  const bool too_large = head.body == BodyKind::length && head.content_length > exchange_->body_limit;
  Status body;
  parser_->body_limit(exchange_->body_limit);
  if (!too_large && !exchange_->streamed_body) body = co_await read_body();
  if (too_large || (!body && body.error().code == Code::limit)) {
    Response large = error_response(413, "Request body is larger than " + std::to_string(exchange_->body_limit) + " bytes");
    co_return co_await refuse(std::move(large), true);
  }
  if (room_ != Room::granted) {
    parser_.reset();  // while its client reads the refusal, its room is free for others
    held_.release();
    Response full = no_room(room_);
    co_return co_await refuse(std::move(full), true);
  }
  if (!body) {
    if (body.error().code != Code::invalid_argument) co_return false;
    Response bad = error_response(400, "Bad Request: " + body.error().what);
    co_return co_await refuse(std::move(bad), true);
  }
  if (head.body != BodyKind::none && !exchange_->still_allowed()) {  // it may have taken long
    parser_.reset();
    held_.release();
    Response late = credential_ended();
    co_return co_await refuse(std::move(late), exchange_->streamed_body);
  }
  exchange_->request.body = std::move(parser_->get().body());
  Response response = co_await serve();
  if (exchange_->upgraded()) co_return co_await tunnel();
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

// Answers without serving. Unread bytes of this request cannot be told from a next request, so the connection ends.
asio::awaitable<bool> Connection::refuse(Response response, bool unread_body) {
  if (unread_body) keep_alive_ = false;
  const bool more = co_await answer(std::move(response));
  if (!more && unread_body) co_await linger();
  co_return more;
}

// Beast reads the head a second time. If it finds another framing than we did, the request is refused.
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

task<void> Connection::read_body() {
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
    // Nothing is read meanwhile, so the client feels the back-pressure. A body is charged by the capacity of its string.
    room_ = co_await await_room(parser_->get().body().capacity());
    if (room_ != Room::granted) co_return caisson::fail(Code::io, "no room for the body");
  }
  pace_.begin(Pace::At::serving);
  co_return Status{};
}

task<std::size_t> Connection::read_some_body() {
  if (std::exchange(expects_continue_, false) && buffer_.size() == 0 && !streaming_) {
    const AsyncLock::Held held = co_await write_lock_.acquire();
    if (!streaming_) CO_TRY(co_await write_all("HTTP/1.1 100 Continue\r\n\r\n"));
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
  lost_ = lost_ || !exchange_->still_allowed();
  if (lost_) co_return caisson::fail(Code::io, "the client's credential has ended");
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
  pace_.waits_for_us = true;  // a connection does not make room for itself
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
    pace_.begin(pace_.at());  // time spent waiting for us does not count as standing still
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
  task<std::shared_ptr<WebSocket::Transport>> accepted =
      stream_.tls() != nullptr
          ? accept_websocket(*stream_.tls(), std::move(raw_head_), record_.id, limits_, std::move(in), std::move(out))
          : accept_websocket(stream_.release_plain(), std::move(raw_head_), record_.id, limits_, std::move(in), std::move(out));
  auto transport = co_await std::move(accepted);
  if (!transport) co_return false;
  record_.status = 101;
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

asio::awaitable<bool> Connection::tunnel() {
  stream_.expires_never();
  std::string early(buffered());
  buffer_.clear();
  record_.status = 101;
  ClientSocket client = &stream_.socket();
  if (stream_.tls() != nullptr) client = stream_.tls();
  const auto sent = co_await exchange_->tunnel(client, std::move(early));
  record_.bytes += sent.value_or(0);
  close();
  held_.release();
  co_return false;
}

void Connection::close() {
  boost::system::error_code ignored;
  stream_.socket().close(ignored);
}

// A client without an answer so far is told why, if it reads; nothing here waits for it.
void Connection::give_up() {
  boost::system::error_code ignored;
  const bool unanswered = pace_.at() == Pace::At::head || pace_.at() == Pace::At::body;
  if (!lingering_ && (unanswered || (is_for_probes() && pace_.at() == Pace::At::idle))) {
    const std::string_view why = is_for_probes() ? kFull : kTooSlow;
    if (const TlsStream* tls = stream_.tls()) {
      tls->try_write(why);
    } else {
      stream_.socket().non_blocking(true, ignored);
      stream_.socket().write_some(asio::buffer(why), ignored);
    }
    record_.status = 503;
  }
  close();
  held_.release();
}

void Connection::stop(bool force) {
  if (const auto socket = socket_.lock(); socket && force) socket->abort();
  else if (socket) spawn(stream_.get_executor(), "websocket close", close_websocket(socket, 1001, "server is stopping"));
  else if (exchange_ && streaming_ && !unsent_ && !exchange_->relayed && (force || method_ == Method::get)) end_events();
  else if (force || pace_.at() == Pace::At::idle) close();
}

// The end of an event stream in the middle of its handler. Streams that a GET opens have no end of their own (watches,
// observations, audit logs), and their clients come back with the last event's id. Between two events the mark of the end keeps
// the framing whole; during one, only closing is honest. Nothing waits for the client: five bytes without room are not sent.
void Connection::end_events() {
  constexpr std::string_view kEnd = "0\r\n\r\n";
  boost::system::error_code ignored;
  if (minor_version_ == 1 && !writing_piece_ && pace_.at() == Pace::At::serving) {
    if (const TlsStream* tls = stream_.tls()) {
      tls->try_write(kEnd);
    } else {
      stream_.socket().non_blocking(true, ignored);
      stream_.socket().write_some(asio::buffer(kEnd), ignored);
    }
  }
  peer_->gone = true;
  close();
}

void Connection::finish() {
  if (const TlsStream* tls = stream_.tls()) tls->finish();
}

task<void> run_connection(std::shared_ptr<Server::State> state, asio::ip::tcp::socket socket, TlsContext tls, Place place,
                          std::string inside) {
  Connection connection(std::move(state), std::move(socket), tls, place, std::move(inside));
  co_await connection.run();
  connection.finish();
  co_return Status{};
}

void stop_connection(Connection& connection, bool force) { connection.stop(force); }
bool is_open(const Connection* connection) { return connection->is_open(); }

}  // namespace caisson::http
