// MessageStream: what is sent to an MCP client in answer to one request, or unasked: messages in order, each with a number, so
// that a client whose connection broke continues where it was (Streamable HTTP, "Resumability and Redelivery").
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "agent/bridge/notifier.h"
#include "agent/http/budget.h"
#include "launcher/common/base/json.h"

namespace caisson::services {

class MessageStream {
 public:
  static constexpr std::size_t kMostBytes = 1024 * 1024, kMostMessages = 1024;
  struct Event {
    std::uint64_t number;  // from 1
    std::string text;      // the message as JSON
  };

  // share: pays for what is kept beyond 64 KiB.
  MessageStream(asio::any_io_executor executor, std::string stream_id, http::Budget::Share share = {})
      : id(std::move(stream_id)), changed(std::move(executor)), share_(std::move(share)) {}

  // Beyond its bounds the oldest messages are forgotten: they are notifications of a client that does not read.
  void push(const json::Value& message);
  // The answer to the request, and the end of the stream. If there is no room for it, an error takes its place.
  void finish(const json::Value& message);
  // The first message after that number; nullptr: there is none yet.
  [[nodiscard]] const Event* after(std::uint64_t number) const;
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] std::uint64_t last() const { return next_ - 1; }

  const std::string id;
  bridge::Notifier changed;
  std::uint64_t readers = 0;  // counts connections: the newest one has the stream
  int status = 200;           // of the HTTP answer, if the end of the stream is all of it

 private:
  void keep(std::string text);
  [[nodiscard]] bool has_room();
  http::Budget::Share share_;
  std::deque<Event> events_;
  std::size_t bytes_ = 0;
  std::uint64_t next_ = 1;
  bool over_ = false;
};
using MessageStreamPtr = std::shared_ptr<MessageStream>;

}  // namespace caisson::services
