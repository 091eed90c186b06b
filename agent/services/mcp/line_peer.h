// LinePeer: JSON-RPC with an MCP server over the stdin and stdout of its program, one message in each line (MCP, "stdio"). The
// server is untrusted: lines, requests under way and unread input are bounded; what nobody asked for is taken slowly; and when
// the server ends, breaks the protocol or falls silent, every request ends with an error.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/services/common/output_buffer.h"
#include "agent/services/mcp/message.h"
#include "agent/services/program/program.h"

namespace caisson::services {

// One request to a server, which its asker may call off.
struct Exchange {
  explicit Exchange(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::function<void(json::Value params)> on_progress;  // absent: none is asked for
  // While it returns true the deadline does not count: the server waits for a person's answer.
  std::function<bool()> is_waiting;
  std::optional<mcp::Or<json::Value>> reply;
  bool called_off = false;
  bridge::Notifier changed;

  void call_off() {
    called_off = true;
    changed.notify_all();
  }
};
using ExchangePtr = std::shared_ptr<Exchange>;

class LinePeer : public std::enable_shared_from_this<LinePeer> {
 public:
  using Pointer = std::shared_ptr<LinePeer>;
  static constexpr std::size_t kMostLine = mcp::kMostMessage, kMostUnderWay = 256, kMostUnread = 16 * 1024 * 1024;

  // on_message: requests and notifications of the server, but progress of requests that are under way. Never after the end.
  [[nodiscard]] static Pointer over(Program::Pointer program, std::shared_ptr<OutputBudget> budget,
                                    std::function<void(mcp::Message)> on_message);

  // The result. Failures: the server's own error; and as `internal` its end, no answer until the deadline, too much under way.
  // A request that is called off, or whose time is over, is cancelled at the server; a late answer is dropped.
  [[nodiscard]] static asio::awaitable<mcp::Or<json::Value>> call(Pointer self, ExchangePtr exchange, std::string method,
                                                                  json::Value params, bridge::Clock::time_point deadline);
  // A notification, or an answer to the server's request. Dropped if the server does not read.
  void send(const json::Value& message);
  // Before everything else: what the program reads before it speaks the protocol.
  void send_first(std::string_view text);

  [[nodiscard]] bool alive() const { return program_->alive(); }
  [[nodiscard]] const asio::any_io_executor& executor() const { return program_->executor(); }

  LinePeer(const LinePeer&) = delete;
  LinePeer& operator=(const LinePeer&) = delete;

 private:
  struct Forget;

  LinePeer(Program::Pointer program, std::shared_ptr<OutputBudget> budget, std::function<void(mcp::Message)> on_message);
  static task<void> read_output(Pointer self);
  static task<void> write_input(Pointer self);
  // One piece of the output; false: so much came unasked that the server must wait.
  [[nodiscard]] Result<ReadEnd> read_turn();
  [[nodiscard]] Status take_line();
  void take(mcp::Message message);
  [[nodiscard]] bool push(const json::Value& message) { return push_text(json::dump(message) + "\n"); }
  [[nodiscard]] bool push_text(std::string_view text);
  [[nodiscard]] bool flush();
  void ended(const Program& program);

  const Program::Pointer program_;
  std::function<void(mcp::Message)> on_message_;
  http::Budget::Share from_, to_;
  std::string line_;
  std::size_t unasked_ = 0;           // messages of this turn
  std::chrono::nanoseconds debt_{0};  // time that it owes to the others, for what was read of it
  std::map<std::int64_t, ExchangePtr> pending_;
  std::int64_t next_id_ = 1;
  std::string outbox_;
  std::size_t done_ = 0;  // of outbox_
  bool writing_ = false;
};

}  // namespace caisson::services
