// What caisson-logs (logs/main.cc) and the launcher say to each other, on a SOCK_SEQPACKET pair: one of these and a JSON object,
// the record that is to be made; the answer is one byte, 'y' when it was made.
#pragma once

#include <cstddef>

namespace caisson::audit {

inline constexpr char kMayGo = 'd', kKeepRoot = 'r';  // Event::log_deleted, whose files go then; Event::log_root
inline constexpr std::size_t kMaxSweeperMessage = 8 * 1024;
inline constexpr int kSweepMore = 75;  // status: there is more to do. 0: there is not

}  // namespace caisson::audit
