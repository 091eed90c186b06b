// McpSessions: the sessions of MCP clients up to revision 2025-11-25, by the id that each names in Mcp-Session-Id. An id confers
// no rights: only the owner who began a session may use it. They are forgotten with the agent; a client that hears 404 begins
// anew (Streamable HTTP, "Session Management").
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "agent/bridge/notifier.h"

namespace caisson::services {

class McpSessions {
 public:
  // One more of an owner, or of all, ends the one of these that was unused for longest: who begins many ends its own.
  static constexpr std::size_t kMostOfOne = 128, kMost = 1024;

  // 32 hexadecimal digits.
  [[nodiscard]] std::string begin(std::string owner);
  // Whether there is such a session of the owner's; it counts as used now.
  [[nodiscard]] bool use(const std::string& id, const std::string& owner);
  [[nodiscard]] bool end(const std::string& id, const std::string& owner);
  void clear() { sessions_.clear(); }

 private:
  struct Session {
    std::string owner;
    bridge::Clock::time_point used;
  };
  // Of one owner; nullptr: of all.
  void end_oldest(const std::string* owner);

  std::map<std::string, Session> sessions_;
};

}  // namespace caisson::services
