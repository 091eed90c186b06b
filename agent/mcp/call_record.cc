#include "agent/mcp/call_record.h"

#include "agent/http/access_log.h"
#include "launcher/common/base/hash.h"

namespace caisson::mcp {

CallRecord::CallRecord(http::Server* server, std::string workspace, std::string identity, std::string of, std::string tool,
                       const json::Value& arguments)
    : server_(server),
      workspace_(std::move(workspace)),
      identity_(std::move(identity)),
      of_(std::move(of)),
      tool_(std::move(tool)) {
  if (server_ != nullptr) digest_ = sha256_hex(json::dump(arguments));
}

CallRecord::~CallRecord() {
  if (server_ == nullptr) return;
  server_->note_call({.workspace = workspace_,
                      .identity = identity_,
                      .server = of_,
                      .tool = tool_,
                      .arguments_digest = digest_,
                      .outcome = outcome_,
                      .took = std::chrono::duration_cast<std::chrono::microseconds>(bridge::Clock::now() - begun_)});
}

}  // namespace caisson::mcp
