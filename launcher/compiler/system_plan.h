// The plan of a policy with `system_packages`: what of the container's system is in the copy that its sessions may write to.
#pragma once

#include <string>

#include "launcher/common/confine/plan.h"

namespace caisson::confine {

// What belongs to packages.
inline constexpr const char* kSystemTops[] = {"/etc", "/opt", "/root", "/run", "/srv", "/usr", "/var"};

// Changes a plan whose binds, files, links and hidden paths are there. What is granted for reading of /etc and /var will be
// copied, /usr be laid under, and the policy's files be made in the copy, once: from then on they are the sessions' own. Policies
// that have the same of this share a copy; it lies below `directory`. Where a policy has a mount or its home in one of the other
// tops, that top is not in its copy. Errors: invalid_argument, without a grant of all of /usr, or with a mount of its own in
// /usr, /etc or /var.
[[nodiscard]] Status plan_system(Plan& plan, const std::string& directory);

}  // namespace caisson::confine
