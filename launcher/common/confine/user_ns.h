// The one-line id map of a session's user namespace: inner uid 1000 is one unprivileged outer uid, and nothing else of
// the outside exists in it. Outer uid 0 is never mapped: an identity map would give back the DAC powers of a capability
// set that the outer container dropped.
#pragma once

#include <sys/types.h>

#include "launcher/common/base/result.h"
#include "launcher/common/kernel/inner_user.h"

namespace caisson::confine {

// Writes setgroups (deny), uid_map and gid_map of `pid`, which has just unshared its user namespace. Needs CAP_SETUID and
// CAP_SETGID here unless outer_uid is our own. Post-condition: read back and compared.
[[nodiscard]] Status write_id_maps(pid_t pid, uid_t outer_uid, gid_t outer_gid);

}  // namespace caisson::confine
