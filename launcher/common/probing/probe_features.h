// What this machine can do, found out by trying (confine/features.h).
#pragma once

#include "launcher/common/confine/features.h"

namespace caisson::confine {

// For caisson-probe, which the launcher asks, and for the command line. Takes some milliseconds; forks. Never fails: what cannot
// be found out is not there.
[[nodiscard]] Features probe_features();
// Landlock's ABI, cgroup: what costs nothing to ask.
void ask_cheaply(Features& features);

}  // namespace caisson::confine
