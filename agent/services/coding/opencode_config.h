// OpenCode's opencode.json, made of the operator's variables. What OPENCODE_JSON says goes before everything else that is written
// here.
#pragma once

#include <string>

#include "agent/services/coding/coding_settings.h"

namespace caisson::services {

[[nodiscard]] std::string opencode_config(const CodingSettings::OpenCode& settings);

}  // namespace caisson::services
