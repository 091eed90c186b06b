// The auditor's own filter: after seal() it can wait, talk to its listeners and its socket, read below /proc and take memory;
// any other call kills it.
#pragma once

namespace caisson::auditor {

// False with errno. Needs no_new_privs.
[[nodiscard]] bool seal();

}  // namespace caisson::auditor
