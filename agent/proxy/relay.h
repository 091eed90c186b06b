// Relay: one request on its way to an app and the answer on its way back, or the bytes of a WebSocket both ways.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/metrics/registry.h"
#include "agent/proxy/answer_head.h"
#include "agent/proxy/proxy.h"

namespace caisson::proxy {

class Relay final : public http::Exchange {
 public:
  Relay(Proxy& proxy, http::Request request, Destination to, bool drop_authorization, std::string workspace,
        std::shared_ptr<void> kept);

  ~Relay() override;
  asio::awaitable<http::Response> serve(http::StreamWriter& writer) override;
  task<void> converse(http::WebSocket) override { co_return fail(Code::internal, "a relay is no end of a WebSocket"); }
  [[nodiscard]] bool upgraded() const override { return !switched_.empty(); }
  task<std::uint64_t> tunnel(http::ClientSocket client, std::string early) override;

 private:
  asio::awaitable<http::Response> relay(http::StreamWriter& writer);
  task<void> connect();
  task<void> connect_anew();
  void keep_connection();
  // Each is one of the coroutines that run side by side until the first is over.
  asio::awaitable<http::Response> download(http::StreamWriter* writer);
  asio::awaitable<void> upload(http::StreamWriter* writer);
  asio::awaitable<void> watch();

  task<void> fetch(http::StreamWriter* writer);
  task<AnswerHead> read_head();
  task<void> pass_on(http::StreamWriter* writer, AnswerHead head);
  task<void> take_switch(AnswerHead head);
  task<void> send_body(http::StreamWriter* writer);
  [[nodiscard]] http::Response failed(const Error& error) const;

  Proxy& proxy_;
  const Destination to_;
  const bool drop_authorization_;
  const std::shared_ptr<void> kept_;
  std::optional<Proxy::Slot> slot_;
  std::optional<Backend> backend_;
  std::optional<Pool::Waiting> waiting_;
  std::uint64_t born_ = 0;    // Pool::age() when the connection was made
  std::string bytes_;         // of the app's answer, unread
  std::string switched_;      // the head of its 101
  bool kept_before_ = false;  // the connection has carried an answer before this one
  bool whole_ = false;        // the answer is complete, and another may follow on its connection
  bool interim_ = false;      // there was an answer before the answer
  const metrics::Stopwatch watch_;
  int status_ = 0;        // of the answer; 0: the request was not relayed
  bool started_ = false;  // the client has got a head
  bool uploaded_ = false;
  bool client_lost_ = false;
};

}  // namespace caisson::proxy
