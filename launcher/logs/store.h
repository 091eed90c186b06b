// The audit directory as caisson-logs knows it: which logs must go, for their age or for room. Names, sizes and what the launcher
// itself wrote decide, never the times or attributes of files: where sessions have the launcher's uid, they can change these, and
// no wall forbids it.
#pragma once

#include <functional>
#include <string>

#include "launcher/common/base/json.h"

namespace caisson::audit {

inline constexpr std::size_t kMaxLogs = 65'536;    // of sessions, however small
inline constexpr std::size_t kMaxDeletions = 256;  // of one sweep: the rest waits for the next

struct Rules {
  std::int64_t now_ns = 0;      // of the wall clock
  std::int64_t mono_us = 0;     // of the one that does not jump
  std::string boot;             // the launcher's, a word: times of the second clock are compared within one
  std::uint64_t keep_days = 0;  // of logs that do not say it themselves
  std::uint64_t max_bytes = 0;  // the room for all
  // Asked before each deletion, of what is on record then; false: the session runs, its log stays.
  std::function<bool(const json::Value& deletion)> may_go;
  // Told what one of the launcher's own logs, which must go for room, says of the end of a log that stays.
  std::function<void(const json::Value& root)> keep_root;
};
// Deletes the logs that are older than they are kept, then, until the rest fits, the oldest of the workspace that takes the
// most; last those of the launcher's own earlier logs that no other needs. false: there is more to do.
[[nodiscard]] bool sweep(const std::string& directory, const Rules& rules);

}  // namespace caisson::audit
