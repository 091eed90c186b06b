// The class Connection, which connection.cc and answering.cc share. Private to agent/http.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>

#include "agent/http/append_body.h"
#include "agent/http/async_lock.h"
#include "agent/http/connection.h"
#include "agent/http/framing.h"
#include "agent/http/pace.h"
#include "agent/http/websocket_accept.h"

namespace caisson::http {

[[nodiscard]] Response no_room(Room room);
inline constexpr std::string_view kUnheld =
    "The request was carried out, but there is no room for its answer: ask for less, and read the answers to others";

class Connection final : public StreamWriter {
 public:
  static constexpr std::size_t kReadStep = 4096;
  static constexpr std::size_t kKeepBuffer = 64 * 1024;
  using tcp = asio::ip::tcp;
  using Parser = boost::beast::http::request_parser<AppendBody>;

  Connection(std::shared_ptr<Server::State> state, tcp::socket socket)
      : state_(std::move(state)), limits_(state_->limits), stream_(std::move(socket)), write_lock_(stream_.get_executor()) {
    state_->open.push_back(this);
    boost::system::error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    stream_.socket().set_option(asio::socket_base::keep_alive(true), ignored);
    remote_ = address_of(stream_.socket());
    payer_ = state_->client(remote_);
  }
  ~Connection() override { std::erase(state_->open, this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  asio::awaitable<void> run();
  void stop(bool force);

  task<void> start(std::string content_type) override;
  task<void> write(std::string bytes) override;
  task<void> start_sized(Response head, std::uint64_t length) override;
  task<void> reserve(std::size_t bytes) override;
  task<Lane::Turn> work(std::size_t bytes) override;
  task<Lane::Turn> answer_of(std::size_t bytes, bool carried_out) override;
  task<std::string> read_piece() override;

  [[nodiscard]] const Budget::Payer* client_payer() const { return payer_.get(); }
  [[nodiscard]] const Budget::Payer* workspace_payer() const { return workspace_.get(); }
  [[nodiscard]] std::size_t held() const { return held_.bytes(); }
  [[nodiscard]] std::size_t held_by_client() const { return payer_->used(); }
  [[nodiscard]] std::optional<double> slow() const { return pace_.slow(limits_.pace_window); }
  // Ends it for the sake of another; what it held is free at once.
  void give_up();

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
  // Counts what is held of the request or answer under way. The second waits for room, for room_wait at most.
  [[nodiscard]] Room hold(std::size_t bytes);
  asio::awaitable<Room> await_room(std::size_t bytes);
  asio::awaitable<Response> serve();
  asio::awaitable<Response> serve_guarded();
  asio::awaitable<void> watch_peer();
  asio::awaitable<void> send_heartbeats();
  // Counts an answer before anything waits; without room it is told so instead.
  void keep(Response& response);
  asio::awaitable<void> make_text(Response* response);
  asio::awaitable<bool> answer(Response response);
  task<void> write_all(std::string head, std::string_view body = {});
  asio::awaitable<void> linger();
  task<void> throw_away();
  [[nodiscard]] std::string_view buffered() const { return {static_cast<const char*>(buffer_.data().data()), buffer_.size()}; }
  [[nodiscard]] bool goes_on() const { return keep_alive_ && !state_->stopping; }
  void close();

  std::shared_ptr<Server::State> state_;
  const Limits limits_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{kReadStep + 2 * kKeepBuffer};
  AsyncLock write_lock_;
  std::string remote_;
  Budget::PayerPtr payer_;
  Budget::PayerPtr workspace_;  // of the request under way, or the last one
  Budget::Share held_;
  Pace pace_;

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
  std::size_t reserved_ = 0;             // for the pieces of a body that is sent or received in pieces
  Room room_ = Room::granted;            // or why the request under way is refused
};

}  // namespace caisson::http
