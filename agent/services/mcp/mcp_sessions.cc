#include "agent/services/mcp/mcp_sessions.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::services {

std::string McpSessions::begin(std::string owner) {
  const auto own = std::ranges::count_if(sessions_, [&owner](const auto& one) { return one.second.owner == owner; });
  if (static_cast<std::size_t>(own) >= kMostOfOne) end_oldest(&owner);
  else if (sessions_.size() >= kMost) end_oldest(nullptr);
  std::string id = sys::random_hex(16);
  sessions_[id] = Session{std::move(owner), bridge::Clock::now()};
  return id;
}

void McpSessions::end_oldest(const std::string* owner) {
  auto oldest = sessions_.end();
  for (auto one = sessions_.begin(); one != sessions_.end(); ++one) {
    if (owner != nullptr && one->second.owner != *owner) continue;
    if (oldest == sessions_.end() || one->second.used < oldest->second.used) oldest = one;
  }
  if (oldest != sessions_.end()) sessions_.erase(oldest);
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
