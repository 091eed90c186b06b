// What memory sessions have, where no cgroup counts it.
#pragma once

#include <vector>

#include "launcher/common/base/json.h"

namespace caisson::homes {

// Each word is LABEL/LIMIT/PID,PID...: a name for the answer, bytes, and the first processes of one session or of several that
// have the limit together. {"over": [{"label", "bytes", "largest"}], "unread": [label]}: those that have more, with the figure
// and the session that has most of it; and those whose processes did not let us see all, or had too much for the time that there
// is. What is not seen counts for nothing. What several share counts once, and a file in memory (memfd_create) that is open does,
// mapped or not. No figure is more than what was there at one moment.
[[nodiscard]] Result<json::Value> weigh(const std::vector<std::string>& words);

}  // namespace caisson::homes
