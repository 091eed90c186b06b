// A failed step in words.
#pragma once

#include "launcher/common/confine/plan.h"
#include "launcher/common/wire/steps.h"

namespace caisson::confine {

// "mount: attach_grants '/srv/data': EACCES (Permission denied)".
[[nodiscard]] Error step_error(const Plan& plan, const StepRecord& record);

}  // namespace caisson::confine
