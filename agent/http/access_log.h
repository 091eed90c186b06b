// AccessLog: one line of JSON on stderr for each request. Never a key, a query string or a body. A reader of stderr that stops
// does not stop the agent: lines wait in a bounded buffer, and those without room are counted in a later line. stderr cannot be
// made non-blocking, because the launcher shares it. Instead poll() is asked first, and then at most PIPE_BUF bytes are written:
// a pipe that poll() calls writable takes as many without blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/http/coro.h"

namespace caisson::http {

struct AccessLine {
  std::string_view id = {}, remote = {}, scheme = {}, method = {}, path = {}, user_agent = {}, workspace = {};
  int status = 0;          // 0: the client left without an answer
  std::uint16_t port = 0;  // of a server in the workspace; 0: the answer is ours
  std::uint64_t bytes = 0;
  std::chrono::microseconds took{};
};

// A call of an MCP tool: its workspace, credential, server and tool, a digest of its arguments, and its outcome.
struct CallLine {
  std::string_view workspace, identity, server, tool, arguments_digest;
  std::string_view outcome;  // "done", "tool_error", "error"
  std::chrono::microseconds took{};
};

// Without the time, and with a line break. All texts are bounded and escaped: the line is ASCII.
[[nodiscard]] std::string access_text(const AccessLine& line);
[[nodiscard]] std::string call_text(const CallLine& line);

class AccessLog {
 public:
  static constexpr std::size_t kMostWaiting = 256 * 1024;

  // fd -1: no log. The descriptor is not owned.
  AccessLog(const asio::any_io_executor& executor, int fd) : timer_(executor), fd_(fd) {}
  void add(const AccessLine& line) { add("access", access_text(line)); }
  void add(const CallLine& line) { add("mcp_call", call_text(line)); }
  void flush();  // what can be written without waiting
  [[nodiscard]] bool on() const { return fd_ >= 0; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  void add(std::string_view kind, std::string text);
  void flush_later();
  asio::steady_timer timer_;
  const int fd_;
  std::string waiting_;
  std::uint64_t dropped_ = 0;
  bool timed_ = false;
};

}  // namespace caisson::http
