// Compiles a policy's syscall sets to one BPF program, once per policy; seccomp(2) then loads it in any number of children.
// libseccomp resolves names and numbers. The program is assembled here because libseccomp 2.5 cannot say "allowed except
// when" nor give a mismatch another errno than the default, and needs 1.3 ms where `caisson run` has 2.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/policy/policy.h"

namespace caisson::confine {

using Program = std::vector<sock_filter>;

// Native architecture only: any other (i386, x32) kills the process. A number in no set: ENOSYS, so that libraries fall
// back; in a set's `refuse`, or a condition not met: EPERM. When several sets name a call, it is allowed when one of
// them allows it and none refuses it; `refuse` wins over all. Errors: invalid_argument for a name that libseccomp does not know
// on any architecture; names that only other architectures have are skipped.
//
// Refusal::notify: what would be answered EPERM is told to the filter's listener instead, which answers it so; where nobody
// listens any more, the kernel answers ENOSYS. Unknown numbers, which libraries try out all day, and foreign architectures stay
// as they are, and no allowed call is slower.
// Refusal::observe: also the calls that name files, where they are allowed without a condition; the listener lets these go on.
enum class Refusal { answer, notify, observe };
[[nodiscard]] Result<Program> compile_seccomp(const std::vector<policy::SyscallSet>& sets, Refusal refusal = Refusal::answer);

// What a program of these sets can refuse with EPERM, and by which rule (base/auditor_protocol.h).
[[nodiscard]] std::string refusals(const std::vector<policy::SyscallSet>& sets);

// For the child: 0, or -1 with errno. Needs no_new_privs. listener: receives the descriptor (close-on-exec) that is told.
int load_seccomp(const Program& program, int* listener = nullptr);

}  // namespace caisson::confine
