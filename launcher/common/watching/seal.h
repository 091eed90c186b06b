// The own filter of each of the two: after seal() it can wait, talk to its listeners and its sockets and take memory. The auditor
// can read files, of which it opens those below /proc; the observer can open nothing, but read the memory of other processes
// and where their links in /proc lead. Any other call kills it.
#pragma once

namespace caisson::auditor {

enum class Role { auditor, observer };
// False with errno. Needs no_new_privs.
[[nodiscard]] bool seal(Role role);

}  // namespace caisson::auditor
