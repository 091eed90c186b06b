// The variables that the launcher passes on to the agent from its own environment. Each has a row with its default, bounds and
// meaning in agent/services/common/variables.h, which does not compile without one.
#pragma once

#include <string_view>

namespace caisson {

inline constexpr std::string_view kAgentVariables =
    "TZ USER CAISSON_ALLOW_ORIGIN CAISSON_ALLOW_HOST MAX_SHELL_SESSIONS MAX_BASH_SESSIONS MAX_CODE_SESSIONS MAX_JUPYTER_SESSIONS "
    "CAISSON_WARM_SESSIONS CAISSON_SESSION_IDLE_SECONDS CAISSON_IMPLICIT_IDLE_SECONDS CAISSON_JUPYTER_IDLE_SECONDS "
    "CAISSON_KERNEL_POOL PYTHON_VERSION CAISSON_OUTPUT_CAP_BYTES CAISSON_OUTPUT_TOTAL_BYTES CAISSON_HOOK_SECONDS RUN_HOOK_INIT "
    "RUN_HOOK_PRE_SERVICES RUN_HOOK_POST_READY";

}  // namespace caisson
