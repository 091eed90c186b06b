// Records as events of the Open Cybersecurity Schema Framework (OCSF 1.3), for a SIEM. The mapping, class by class, is in
// launcher/common/audit/README.md; what has no place in a class is under "unmapped", so that nothing is lost. Pure.
#pragma once

#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::audit {

// `log`: whose record it is ("s-0123456789abcdef", "launcher").
[[nodiscard]] json::Value ocsf(const json::Value& record, std::string_view log);

}  // namespace caisson::audit
