// Landlock access masks by ABI. The kernel's list of rights by version:
// https://docs.kernel.org/userspace-api/landlock.html
#pragma once

#include <cstdint>

namespace caisson::confine {

// Every filesystem right that this ABI can restrict: all are handled, so that a right without a rule is denied.
[[nodiscard]] std::uint64_t landlock_fs_rights(int abi);
// Every scope of this ABI (6: abstract UNIX sockets and signals).
[[nodiscard]] std::uint64_t landlock_scopes(int abi);

// What a rule gives below a path. `abi` cuts off what the kernel does not know.
[[nodiscard]] std::uint64_t landlock_read(int abi, bool execute);
[[nodiscard]] std::uint64_t landlock_write(int abi);

}  // namespace caisson::confine
