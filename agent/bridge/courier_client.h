// CourierClient: the agent's end of the line to caisson-courier (fd 0), which makes the requests that the agent cannot. It may be
// missing for a while, since the launcher starts it again: what was asked waits in the line, or is lost.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/courier/line.h"

namespace caisson::bridge {

class CourierClient {
 public:
  CourierClient(const asio::any_io_executor& executor, Fd line) : line_(executor, std::move(line)), settled_(executor) {}

  // What the courier told; called by listen().
  std::function<void(Result<std::string> set)> on_keys = {};
  std::function<void(std::uint32_t count, const Status& posted)> on_spans = {};

  // False: the line is full, and nobody reads it now.
  bool fetch_keys() { return line_.try_send({courier::Type::fetch_keys, 0}, "").has_value(); }
  bool post_spans(const std::string& body, std::uint32_t count);
  // Waits until it has told what became of all spans, for so long at most.
  [[nodiscard]] asio::awaitable<void> settle(std::chrono::milliseconds limit);
  // Takes messages until the line ends. Anything that is not a message of the courier is dropped.
  [[nodiscard]] task<void> listen();

 private:
  void take(courier::Message message);
  void take_part(const courier::Message& message);
  void posted(std::uint32_t count, const Status& done);

  courier::Line line_;
  asio::steady_timer settled_;
  std::size_t posts_ = 0;     // of which nothing has been told
  std::string set_;           // its parts so far
  std::size_t expected_ = 0;  // bytes of it that are still to come
};

}  // namespace caisson::bridge
