#include "agent/services/mcp/mcp_sessions.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::services {

std::string McpSessions::begin(std::string owner) {
  if (sessions_.size() >= kMost)
    sessions_.erase(std::ranges::min_element(sessions_, {}, [](const auto& one) { return one.second.used; }));
  std::string id = sys::random_hex(16);
  sessions_[id] = Session{std::move(owner), bridge::Clock::now()};
  return id;
}

bool McpSessions::use(const std::string& id, const std::string& owner) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.owner != owner) return false;
  found->second.used = bridge::Clock::now();
  return true;
}

bool McpSessions::end(const std::string& id, const std::string& owner) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.owner != owner) return false;
  sessions_.erase(found);
  return true;
}

}  // namespace caisson::services
