#include "agent/courier/client.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "agent/courier/protocol.h"

namespace caisson::courier {
namespace {

namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::ip::tcp;

constexpr std::uint32_t kMaxHead = 16 * 1024;
constexpr int kMostSeconds = 60;

// In this thread, the only one: bounded by RES_OPTIONS (courier_main.cc).
Result<std::vector<tcp::endpoint>> look_up(const Url& url) {
  addrinfo hints{};
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &found);
  if (failed != 0) return fail(Code::io, std::string("the server's name has no address: ") + ::gai_strerror(failed));
  std::vector<tcp::endpoint> out;
  for (const addrinfo* at = found; at != nullptr && out.size() < 8; at = at->ai_next) {
    tcp::endpoint one;
    if (at->ai_addrlen > one.capacity()) continue;
    std::memcpy(one.data(), at->ai_addr, at->ai_addrlen);
    one.resize(at->ai_addrlen);
    out.push_back(one);
  }
  ::freeaddrinfo(found);
  return out;
}

std::unexpected<Error> failed(const char* what, const boost::system::error_code& error) {
  if (error == beast::error::timeout) return fail(Code::timeout, "no answer in time");
  if (error == bhttp::error::body_limit) return fail(Code::io, "the answer is too large");
  return asio_error(what, error);
}

// Without a byte of an answer: a connection that was kept may have been closed by the server meanwhile.
std::unexpected<Error> closed(std::unexpected<Error> failure) {
  if (failure.error().code != Code::io) return failure;
  return fail(Code::unavailable, failure.error().text());
}

std::chrono::seconds seconds_of(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc::result_out_of_range) seconds = kMostSeconds;
  return std::chrono::seconds(std::clamp(seconds, 0, kMostSeconds));
}

struct Heard {
  Answer answer;
  bool keep = false;  // the connection
};

template <class Stream>
task<Heard> converse(Stream& stream, beast::flat_buffer& buffer, bhttp::request<bhttp::string_body>& request) {
  auto [write_error, written] = co_await bhttp::async_write(stream, request, as_values);
  if (write_error) co_return closed(failed("send the request", write_error));
  bhttp::response_parser<bhttp::string_body> parser;
  parser.header_limit(kMaxHead);
  parser.body_limit(kMaxAnswer);
  auto [read_error, read] = co_await bhttp::async_read(stream, buffer, parser, as_values);
  if (read_error && !parser.got_some()) co_return closed(failed("read the answer", read_error));
  if (read_error) co_return failed("read the answer", read_error);
  Heard out;
  auto& response = parser.get();
  const auto coding = response[bhttp::field::content_encoding];
  if (!coding.empty() && coding != "identity") co_return fail(Code::io, "the answer is compressed, which was not asked for");
  out.answer.status = response.result_int();
  const auto retry = response[bhttp::field::retry_after];
  out.answer.retry_after = seconds_of({retry.data(), retry.size()});
  out.answer.body = std::move(response.body());
  out.keep = response.keep_alive() && buffer.size() == 0;  // what came unasked would be the next one's answer
  co_return out;
}

}  // namespace

struct Client::Connection {
  explicit Connection(const asio::any_io_executor& executor)
      : context(asio::ssl::context::tls_client), stream(executor, context) {}

  [[nodiscard]] beast::tcp_stream& transport() { return stream.next_layer(); }

  asio::ssl::context context;
  beast::ssl_stream<beast::tcp_stream> stream;
  beast::flat_buffer buffer{kMaxHead + kMaxAnswer};
};

Client::Client(Url url, std::chrono::milliseconds limit) : url_(std::move(url)), limit_(limit) {}
Client::~Client() = default;

// The store is read for each connection, so that what the operator replaces in it counts from the next one on.
task<void> Client::open() {
  CO_TRY_ASSIGN(const std::vector<tcp::endpoint> endpoints, look_up(url_));
  auto made = std::make_unique<Connection>(co_await asio::this_coro::executor);
  made->transport().expires_after(limit_);
  auto [error, endpoint] = co_await made->transport().async_connect(endpoints, as_values);
  if (error) co_return failed("connect to the server", error);
  if (url_.tls) {
    boost::system::error_code wrong;
    made->context.set_default_verify_paths(wrong);
    if (!wrong) made->stream.set_verify_mode(asio::ssl::verify_peer, wrong);
    if (!wrong) made->stream.set_verify_callback(asio::ssl::host_name_verification(url_.host), wrong);
    boost::system::error_code not_an_address;
    (void)asio::ip::make_address(url_.host, not_an_address);
    if (wrong || SSL_CTX_set_min_proto_version(made->context.native_handle(), TLS1_2_VERSION) != 1 ||
        (not_an_address && SSL_set_tlsext_host_name(made->stream.native_handle(), url_.host.c_str()) != 1))
      co_return fail(Code::internal, "TLS cannot be set up");
    auto [refused] = co_await made->stream.async_handshake(asio::ssl::stream_base::client, as_values);
    if (refused) co_return failed("agree on TLS with the server", refused);
  }
  connection_ = std::move(made);
  co_return Status{};
}

task<Answer> Client::exchange(Ask ask) {
  bhttp::request<bhttp::string_body> request(bhttp::string_to_verb(ask.method), url_.target, 11);
  request.set(bhttp::field::host, url_.authority);
  request.set(bhttp::field::user_agent, "caisson-courier/" CAISSON_VERSION);
  request.set(bhttp::field::accept, "application/json");
  if (!ask.content_type.empty()) request.set(bhttp::field::content_type, ask.content_type);
  for (const auto& [name, value] : ask.headers) request.set(name, value);
  request.body() = std::move(ask.body);
  if (ask.method != "GET") request.prepare_payload();
  for (bool first = true;; first = false) {
    const bool kept = first && connection_ != nullptr;
    if (!connection_) CO_TRY(co_await open());
    connection_->transport().expires_after(limit_);
    auto heard = url_.tls ? co_await converse(connection_->stream, connection_->buffer, request)
                          : co_await converse(connection_->transport(), connection_->buffer, request);
    if (!heard || !heard->keep) connection_.reset();
    if (heard) co_return std::move(heard->answer);
    if (!kept || heard.error().code != Code::unavailable) co_return std::unexpected(std::move(heard).error());
  }
}

}  // namespace caisson::courier
