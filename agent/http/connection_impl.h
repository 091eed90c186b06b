// The class Connection, which connection.cc and answering.cc share. Private to agent/http.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>

#include "agent/http/append_body.h"
#include "agent/http/async_lock.h"
#include "agent/http/client_stream.h"
#include "agent/http/connection.h"
#include "agent/http/framing.h"
#include "agent/http/pace.h"
#include "agent/http/websocket_accept.h"

namespace caisson::http {

[[nodiscard]] Response no_room(Room room);
// Holds the transport itself, because nothing waits for it.
[[nodiscard]] task<void> close_websocket(std::shared_ptr<WebSocket::Transport> transport, std::uint16_t code, std::string why);
inline constexpr std::string_view kUnheld =
    "The request was carried out, but there is no room for its answer: ask for less, and read the answers to others";

class Connection final : public StreamWriter {
 public:
  static constexpr std::size_t kReadBytes = 4096;
  static constexpr std::size_t kKeepBuffer = 64 * 1024;
  using tcp = asio::ip::tcp;
  using Parser = boost::beast::http::request_parser<AppendBody>;

  Connection(std::shared_ptr<Server::State> state, tcp::socket socket, const TlsContext& tls, Place place, std::string inside)
      : place_(place),
        inside_(std::move(inside)),
        state_(std::move(state)),
        limits_(state_->limits),
        stream_(std::move(socket), tls),
        write_lock_(stream_.get_executor()) {
    state_->open.push_back(this);
    boost::system::error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    stream_.socket().set_option(asio::socket_base::keep_alive(true), ignored);
    remote_ = address_of(stream_.socket(), inside_);
    payer_ = state_->client(remote_);
  }
  ~Connection() override { std::erase(state_->open, this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  asio::awaitable<void> run();
  // Says that nothing more will be sent, as TLS wants it said.
  void finish();
  void stop(bool force);
  // Ends a WebSocket (1008), a stream or a tunnel that its credential does not permit any more. A request whose handler runs is
  // answered: it was permitted when it began, and ends by itself.
  void recheck();
  [[nodiscard]] bool is_open() const { return !socket_.expired() || stream_.is_open(); }

  task<void> start(std::string content_type) override;
  task<void> write(std::string bytes) override;
  task<void> start_sized(Response head, std::uint64_t length) override;
  task<void> start_relayed(RelayedHead head, std::string first) override;
  void cut() override { writing_piece_ = streaming_; }
  task<void> reserve(std::size_t bytes) override;
  task<Lane::Turn> work(std::size_t bytes) override;
  task<Lane::Turn> answer_of(std::size_t bytes, bool carried_out) override;
  task<std::string> read_piece() override;

  [[nodiscard]] const Budget::Payer* client_payer() const { return payer_.get(); }
  [[nodiscard]] const Budget::Payer* workspace_payer() const { return workspace_.get(); }
  [[nodiscard]] std::size_t held() const { return held_.bytes(); }
  [[nodiscard]] std::size_t held_by_client() const { return payer_->used(); }
  [[nodiscard]] bool is_for_probes() const { return place_ == Place::probes; }
  [[nodiscard]] bool lingers() const { return lingering_; }
  // One that has been refused gives way at once.
  [[nodiscard]] std::optional<double> slow() const { return lingering_ ? 0.0 : pace_.slow(limits_.pace_window); }
  // Ends it to make room for another; its bytes are free at once.
  void give_up();

 private:
  asio::awaitable<bool> shake_hands(TlsStream tls);
  // bool: whether the connection continues with its next request.
  task<Head> read_head(bool first);
  asio::awaitable<bool> handle(Head head);
  asio::awaitable<bool> handle_admitted(Head head);
  asio::awaitable<bool> refuse(Response response, bool unread_body);
  asio::awaitable<bool> converse(Head head);
  asio::awaitable<bool> tunnel();
  Status feed_head(const Head& head);
  task<void> read_body();
  task<std::size_t> read_some_body();
  // Counts the bytes of the current request or answer. The second waits for room, at most room_wait.
  [[nodiscard]] Room hold(std::size_t bytes);
  asio::awaitable<Room> await_room(std::size_t bytes);
  asio::awaitable<Response> serve();
  asio::awaitable<Response> serve_guarded();
  asio::awaitable<void> watch_peer();
  asio::awaitable<boost::system::error_code> await_hangup();
  asio::awaitable<void> send_heartbeats();
  // Counts an answer before anything waits. Without room the client gets a refusal instead.
  void keep(Response& response);
  asio::awaitable<void> make_text(Response* response);
  asio::awaitable<bool> answer(Response response);
  task<void> write_all(std::string head, std::string_view body = {});
  std::size_t write_at_once(std::string_view head, std::string_view body);
  asio::awaitable<void> linger();
  task<void> throw_away();
  [[nodiscard]] std::string_view buffered() const { return {static_cast<const char*>(buffer_.data().data()), buffer_.size()}; }
  [[nodiscard]] bool goes_on() const { return keep_alive_ && !state_->draining; }
  void close();
  void end_events();
  // The request's line in the access log.
  void begin_record(const Head& head);
  void end_record();
  void begin_span(Request& request);
  void end_span();
  // Makes the body a gzip file if its client takes one.
  asio::awaitable<void> compress(Response* response);

  const Place place_;
  const std::string inside_;  // Request::inside
  std::shared_ptr<Server::State> state_;
  const Limits limits_;
  ClientStream stream_;
  boost::beast::flat_buffer buffer_{kReadBytes + 2 * kKeepBuffer};
  AsyncLock write_lock_;
  std::string remote_;
  Budget::PayerPtr payer_;
  Budget::PayerPtr workspace_;  // of the request under way, or the last one
  Budget::Share held_;
  Pace pace_;

  struct Record {
    std::chrono::steady_clock::time_point began;
    std::string id, remote, scheme, method, path, user_agent, workspace;
    int status = 0;
    std::uint16_t port = 0;
    std::uint64_t bytes = 0;
    bool wanted = false;
    std::shared_ptr<traces::Span> span = nullptr;
  };

  // The request under way.
  Record record_;
  bool takes_gzip_ = false;
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
  bool lingering_ = false;
  bool lost_ = false;                    // its credential ended meanwhile
  std::optional<std::uint64_t> unsent_;  // of a body whose length was told
  std::size_t reserved_ = 0;             // for the pieces of a body that is sent or received in pieces
  Room room_ = Room::granted;            // or the reason why the current request is refused
};

}  // namespace caisson::http
