// `caisson probe`: the same probe by which the launcher decides.
#include "launcher/cli/commands.h"
#include "launcher/confine/features.h"

#include <nlohmann/json.hpp>

namespace caisson::cli {

nlohmann::json probe_report() {
  const confine::Features features = confine::probe_features();
  nlohmann::json report = confine::features_json(features);
  report["why_not_higher"] = confine::why_not_higher(features);
  return report;
}

}  // namespace caisson::cli
