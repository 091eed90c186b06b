// A child of the helper's with no more power than a tenant over its own files.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "launcher/common/base/result.h"

namespace caisson::homes {

// Runs `work` in a child that is the tenant, uid and gid, in a user namespace where it may read, change and remove everything
// that is the tenant's, and nothing else; where there are none, with what the tenant may do itself. What it says becomes this
// process's answer. Error: unavailable, where the child was stopped, and then it is ended.
[[nodiscard]] Result<std::string> as_tenant(uid_t uid, const std::function<Result<std::string>()>& work);

}  // namespace caisson::homes
