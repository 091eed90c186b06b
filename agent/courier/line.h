// Line: one end of the socket between the agent and caisson-courier.
#pragma once

#include <string>
#include <string_view>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/courier/protocol.h"
#include "agent/http/coro.h"
#include "launcher/common/base/fd.h"

namespace caisson::courier {

struct Message {
  Head head{};
  std::string text;
};

class Line {
 public:
  Line(asio::any_io_executor executor, Fd socket);

  // Waits for the next message. Code::protocol: it is none. Code::io: the line is of no use any more.
  [[nodiscard]] task<Message> receive();
  // Without waiting. Code::limit: the other end has not read what was sent before.
  [[nodiscard]] Status try_send(Head head, std::string_view text);
  // Waits until the other end has read enough.
  [[nodiscard]] task<void> send(Head head, std::string text);

 private:
  asio::posix::stream_descriptor socket_;
};

}  // namespace caisson::courier
