// The record of a call of a tool: one line of the access log, however the call ends; and of a configured server's tool, a record
// in the audit log of the session that it runs in, which the launcher keeps.
#pragma once

#include <string>

#include "agent/bridge/launcher_client.h"
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
  // In that session's log. Errors: the launcher's; not_found: the session has ended.
  [[nodiscard]] task<void> note(bridge::LauncherClient& launcher, std::string session) const;
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

 private:
  http::Server* server_;
  std::string workspace_, identity_, of_, tool_, digest_;
  [[nodiscard]] std::chrono::microseconds took() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(bridge::Clock::now() - begun_);
  }
  const char* outcome_ = "error";
  bridge::Clock::time_point begun_ = bridge::Clock::now();
};

}  // namespace caisson::mcp
