// Landlock access masks by ABI, and the ruleset of a plan. The kernel's list of rights by version:
// https://docs.kernel.org/userspace-api/landlock.html
#pragma once

#include <cstdint>

#include "launcher/base/fd.h"
#include "launcher/base/result.h"

namespace caisson::confine {

struct Plan;

// Every filesystem right that this ABI can restrict: all are handled, so that a right without a rule is denied.
[[nodiscard]] std::uint64_t landlock_fs_rights(int abi);
// Every scope of this ABI (6: abstract UNIX sockets and signals).
[[nodiscard]] std::uint64_t landlock_scopes(int abi);

// What a rule gives below a path. `abi` cuts off what the kernel does not know.
[[nodiscard]] std::uint64_t landlock_read(int abi, bool execute);
[[nodiscard]] std::uint64_t landlock_write(int abi);

// Makes the plan's ruleset with paths opened in the calling process's view. Async-signal-safe: also called by the child
// that builds a mount tree. Returns the ruleset's descriptor, or -1 with errno, *entry naming the rule that failed.
[[nodiscard]] int landlock_make(const Plan& plan, int init_fd, unsigned* entry);

}  // namespace caisson::confine
