#include "agent/proxy/relay.h"

#include <algorithm>

#include "agent/proxy/body_reader.h"
#include "agent/proxy/fields.h"
#include "agent/proxy/request_head.h"
#include "agent/proxy/rewrite.h"
#include "agent/proxy/tunnel.h"

namespace caisson::proxy {
namespace {

constexpr std::uint64_t kBodyLimit = std::uint64_t{1} << 40;  // it is passed on, never held
constexpr std::size_t kInTransit = 4 * kPiece;
constexpr std::chrono::milliseconds kLook{500};
constexpr int kLooksOfGone = 24;  // a client that has only closed its sending half may wait for its answer a while
constexpr int kInterim = 8;

http::Response unavailable(std::string_view why) {
  http::Response response = http::error_response(503, why);
  response.headers = {{"retry-after", "1"}};
  return response;
}

asio::awaitable<void> for_ever() {
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await timer.async_wait(as_values);
}

std::string chunk_of(std::string piece) {
  char size[20] = "";
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return piece.insert(0, size).append("\r\n");
}

}  // namespace

Relay::Relay(Proxy& proxy, http::Request request_, Destination to, bool drop_authorization, std::string workspace_,
             std::shared_ptr<void> kept)
    : Exchange(std::move(request_)),
      proxy_(proxy),
      to_(std::move(to)),
      drop_authorization_(drop_authorization),
      kept_(std::move(kept)) {
  workspace = std::move(workspace_);
  port = to_.port;
  body_limit = kBodyLimit;
  streamed_body = true;
  relayed = true;
  metrics::registry().add(metrics::Id::http_active);
}

// The labels are ours: neither the port nor what the server answers is one.
Relay::~Relay() {
  static constexpr std::string_view kClasses[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  const std::string_view outcome = status_ == 0 ? "aborted" : kClasses[std::clamp(status_ / 100, 1, 5) - 1];
  metrics::registry().add(metrics::Id::http_active, {}, -1);
  metrics::registry().add(metrics::Id::http_requests, {"preview", http::method_name(request.method), outcome});
  if (status_ >= 200) metrics::registry().observe(metrics::Id::http_duration, {"preview"}, watch_.elapsed());
}

asio::awaitable<http::Response> Relay::serve(http::StreamWriter& writer) {
  http::Response response = co_await relay(writer);
  if (status_ == 0) status_ = response.status;
  co_return response;
}

asio::awaitable<http::Response> Relay::relay(http::StreamWriter& writer) {
  slot_.emplace(proxy_, workspace);
  if (!*slot_) co_return unavailable("This workspace has too many requests to its own servers under way");
  if (const Status room = co_await writer.reserve(kInTransit); !room) co_return unavailable("There is no room for this request");
  if (const Status made = co_await connect(); !made) co_return failed(made.error());
  using asio::experimental::awaitable_operators::operator||;
  auto ends = watch();
  auto down = download(&writer);
  http::Response response = http::already_sent();
  std::size_t first = 0;
  if (has_body(request)) {
    auto all = std::move(down) || std::move(ends) || upload(&writer);
    auto outcome = co_await std::move(all);
    first = outcome.index();
    if (first == 0) response = std::get<0>(std::move(outcome));
  } else {
    auto both = std::move(down) || std::move(ends);
    auto outcome = co_await std::move(both);
    first = outcome.index();
    if (first == 0) response = std::get<0>(std::move(outcome));
  }
  if (first != 0) {
    if (started_) writer.cut();
    else if (client_lost_) response = http::error_response(400, "The body of the request did not come, or is malformed");
    else response = failed(Error(Code::timeout, "wait for the server"));
  }
  waiting_.reset();
  if (first == 0 && whole_) keep_connection();
  else if (!upgraded()) backend_->close();
  co_return response;
}

// A request that must not be sent twice gets a new connection: the server may be closing a kept one.
task<void> Relay::connect() {
  std::optional<Pool::Socket> kept;
  if (is_repeatable(request)) kept = proxy_.pool.take({workspace, to_.port});
  if (!kept) co_return co_await connect_anew();
  born_ = proxy_.pool.age();
  kept_before_ = true;
  metrics::registry().add(metrics::Id::preview_connections, {"kept"});
  backend_.emplace(std::move(*kept));
  std::string head = request_head(request, to_, drop_authorization_);
  const Status sent = co_await backend_->write(std::move(head));
  if (!sent) co_return co_await connect_anew();
  co_return sent;
}

task<void> Relay::connect_anew() {
  kept_before_ = false;
  born_ = proxy_.pool.age();
  CO_TRY_ASSIGN(asio::ip::tcp::socket socket, co_await proxy_.connect(workspace, to_.port));
  metrics::registry().add(metrics::Id::preview_connections, {"new"});
  backend_.emplace(std::move(socket));
  waiting_.emplace(proxy_.pool, Pool::Place(workspace, to_.port));
  std::string head = request_head(request, to_, drop_authorization_);
  co_return co_await backend_->write(std::move(head));
}

// Bytes that follow the answer belong to none, so nothing may come after them.
void Relay::keep_connection() {
  const bool sent = !has_body(request) || uploaded_;
  if (sent && bytes_.empty() && !interim_) proxy_.pool.keep({workspace, to_.port}, backend_->release(), born_);
  else backend_->close();
}

asio::awaitable<http::Response> Relay::download(http::StreamWriter* writer) {
  const Status done = co_await fetch(writer);
  if (done) co_return http::already_sent();
  if (!started_) co_return failed(done.error());
  writer->cut();
  co_return http::already_sent();
}

// Returns only if the client is gone or sends no proper body. An app that does not take the body may still answer.
asio::awaitable<void> Relay::upload(http::StreamWriter* writer) {
  const Status sent = co_await send_body(writer);
  uploaded_ = sent.has_value();
  if (sent || !client_lost_) co_await for_ever();
}

task<void> Relay::send_body(http::StreamWriter* writer) {
  const bool chunked = is_chunked(request);
  while (true) {
    auto piece = co_await writer->read_piece();
    client_lost_ = !piece;
    if (!piece) co_return std::unexpected(std::move(piece).error());
    if (piece->empty()) break;
    std::string bytes = chunked ? chunk_of(std::move(*piece)) : std::move(*piece);
    CO_TRY(co_await backend_->write(std::move(bytes)));
  }
  if (chunked) CO_TRY(co_await backend_->write("0\r\n\r\n"));
  co_return Status{};
}

// Returns when the client has gone, or when the app has been silent for too long.
asio::awaitable<void> Relay::watch() {
  for (int gone = 0; gone < kLooksOfGone; gone = request.client_gone() ? gone + 1 : 0) {
    co_await sleep_for(kLook);
    if (backend_->silent(Clock::now()) > proxy_.silence()) co_return;
  }
}

task<void> Relay::fetch(http::StreamWriter* writer) {
  CO_TRY_ASSIGN(AnswerHead head, co_await read_head());
  if (head.status == 101) co_return co_await take_switch(std::move(head));
  co_return co_await pass_on(writer, std::move(head));
}

task<AnswerHead> Relay::read_head() {
  std::size_t scanned = 0;
  for (int interim = 0; interim <= kInterim;) {
    CO_TRY_ASSIGN(const std::size_t end, find_answer_end(bytes_, scanned));
    if (end == 0) {
      const auto more = co_await backend_->read(&bytes_);
      const bool closed = !more || !*more;
      if (closed && kept_before_ && bytes_.empty() && !interim_) {
        CO_TRY(co_await connect_anew());
        continue;
      }
      if (!more) co_return std::unexpected(more.error());
      if (closed) co_return fail(Code::protocol, "it closed the connection without one");
      waiting_.reset();
      continue;
    }
    auto head = read_answer_head(std::string_view(bytes_).substr(0, end), request.method == http::Method::head);
    if (!head) co_return std::unexpected(std::move(head).error());
    bytes_.erase(0, end);
    if (head->status >= 200 || head->status == 101) co_return std::move(*head);
    scanned = 0;
    ++interim;
    interim_ = true;
  }
  co_return fail(Code::protocol, "it has too many interim answers");
}

task<void> Relay::pass_on(http::StreamWriter* writer, AnswerHead head) {
  BodyReader body(head);
  const bool leaves = leaves_connection(head);
  const bool bodiless = head.framing == Framing::none;
  http::RelayedHead told{.status = head.status, .reason = std::move(head.reason), .bodiless = bodiless};
  told.headers = headers_for_client(head.headers, to_, request.header("host").value_or(""));
  if (!response_headers.empty())
    std::erase_if(told.headers, [](const auto& h) { return h.first == "access-control-allow-origin"; });
  if (head.framing == Framing::length || (bodiless && head.has_length && head.status != 204)) told.length = head.length;
  std::string piece;
  CO_TRY(body.take(bytes_, piece));
  started_ = true;
  status_ = told.status;
  CO_TRY(co_await writer->start_relayed(std::move(told), std::move(piece)));
  while (!body.done()) {
    CO_TRY_ASSIGN(const bool more, co_await backend_->read(&bytes_));
    if (!more && body.until_end()) break;
    if (!more) co_return fail(Code::protocol, "it ended early");
    std::string next;
    CO_TRY(body.take(bytes_, next));
    CO_TRY(co_await writer->write(std::move(next)));
  }
  whole_ = leaves;
  co_return Status{};
}

task<void> Relay::take_switch(AnswerHead head) {
  if (!asks_websocket(request) || !accepts_websocket(head, *request.header("sec-websocket-key")))
    co_return fail(Code::protocol, "it switches protocols wrongly");
  std::string text = "HTTP/1.1 101 Switching Protocols\r\n";
  for (const auto& [name, value] : headers_for_client(head.headers, to_, request.header("host").value_or("")))
    if (name != "x-request-id") add_field(text, name, value);
  add_field(text, "x-request-id", request.id);
  status_ = 101;
  switched_ = text + "upgrade: websocket\r\nconnection: Upgrade\r\n\r\n";
  co_return Status{};
}

task<std::uint64_t> Relay::tunnel(http::ClientSocket client, std::string early) {
  std::string to_client = switched_ + bytes_;
  bytes_.clear();
  co_return co_await join(client, &backend_->socket(), std::move(to_client), std::move(early), proxy_.silence());
}

http::Response Relay::failed(const Error& error) const {
  const std::string port = std::to_string(to_.port);
  if (error.code == Code::protocol)
    return http::error_response(502, "The answer of the server on port " + port + " is not HTTP: " + error.what);
  if (error.code == Code::limit) return unavailable("Too many connections to servers of sessions are being made");
  if (error.code == Code::timeout || error.sys == ETIMEDOUT)
    return http::error_response(504, "The server on port " + port + " of the workspace does not answer in time");
  if (error.sys == ECONNREFUSED)
    return http::error_response(502,
                                "Nothing listens on port " + port + " of the workspace (on 127.0.0.1, ::1 or all addresses)");
  return http::error_response(502, "Port " + port + " of the workspace: " + error.text());
}

}  // namespace caisson::proxy
