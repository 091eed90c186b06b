// `caisson probe`: the same probe by which the launcher decides.
#include <sys/prctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launcher/cli/commands.h"
#include "launcher/common/confine/features.h"
#include "launcher/common/probing/probe_features.h"

namespace caisson::cli {

// A launcher that is not root shares its uid with sessions, and makes itself undumpable against them. What it starts can then
// write no id map, so that it reaches less than `caisson run` does, which has nobody beside it: both are told.
nlohmann::json probe_report() {
  const bool root = ::geteuid() == 0;
  const confine::Features alone = root ? confine::Features{} : confine::probe_features();
  if (!root) (void)::prctl(PR_SET_DUMPABLE, 0);
  const confine::Features features = confine::probe_features();
  nlohmann::json report = confine::features_json(features);
  if (!root) report["tier_of_run"] = tier_name(alone.tier());
  report["why_not_higher"] = confine::why_not_higher(features);
  return report;
}

}  // namespace caisson::cli
