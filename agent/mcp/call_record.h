// The record of a call of a tool: one line of the access log, however the call ends.
#pragma once

#include <string>

#include "agent/bridge/notifier.h"
#include "agent/http/server.h"
#include "agent/mcp/tool.h"

namespace caisson::mcp {

class CallRecord {
 public:
  // server: nullptr in unit tests, and nothing is recorded.
  CallRecord(http::Server* server, std::string workspace, std::string identity, std::string of, std::string tool,
             const json::Value& arguments);
  // It has a result, which says perhaps that the tool failed. Without this the outcome is "error".
  void ended(bool tool_failed) { outcome_ = tool_failed ? "tool_error" : "done"; }
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

 private:
  http::Server* server_;
  std::string workspace_, identity_, of_, tool_, digest_;
  const char* outcome_ = "error";
  bridge::Clock::time_point begun_ = bridge::Clock::now();
};

}  // namespace caisson::mcp
