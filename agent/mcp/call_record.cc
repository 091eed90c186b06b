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
                      .took = took()});
}

task<void> CallRecord::note(bridge::LauncherClient& launcher, std::string session) const {
  // Names of tools are the server's, and identities those of tokens' issuers.
  constexpr std::size_t kLongest = 256;
  json::Value note = {{"kind", "mcp_call"},
                      {"server", of_},
                      {"tool", tool_.substr(0, kLongest)},
                      {"identity", identity_.substr(0, kLongest)},
                      {"arguments_sha256", digest_},
                      {"outcome", outcome_},
                      {"us", took().count()}};
  co_return co_await launcher.session_note(std::move(session), std::move(note));
}

}  // namespace caisson::mcp
