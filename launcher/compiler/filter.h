// Compiles a policy's syscall sets to one BPF program, once per policy; seccomp(2) then loads it in any number of children.
// libseccomp resolves names and numbers. The program is assembled here because libseccomp 2.5 cannot say "allowed except
// when" nor give a mismatch another errno than the default, and needs 1.3 ms where `caisson run` has 2.
// For `caisson run`, for what our programs allow themselves, and for caisson-policies, which the launcher asks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/seccomp.h"
#include "launcher/common/policy/policy.h"

namespace caisson::confine {

// Native architecture only: any other (i386, x32) kills the process. A number in no set: ENOSYS, so that libraries fall
// back; in a set's `refuse`, or a condition not met: EPERM. When several sets name a call, it is allowed when one of
// them allows it and none refuses it; `refuse` wins over all. A name that libseccomp does not know, or only for other
// architectures, is skipped: ENOSYS. Errors: invalid_argument for a rule with both any_of and refuse_if; limit for more
// instructions than the kernel takes.
[[nodiscard]] Result<Program> compile_seccomp(const std::vector<policy::SyscallSet>& sets, Refusal refusal = Refusal::answer);

// What a program of these sets can refuse with EPERM, and by which rule (common/wire/auditor_protocol.h).
[[nodiscard]] std::string refusals(const std::vector<policy::SyscallSet>& sets);

// What a filter refuses in place of a Landlock that does not govern it (`ungoverned`: not nothing). No filter sees the flags of
// openat2(2): there is none then.
[[nodiscard]] policy::SyscallSet stands_in(Ungoverned ungoverned);

// What ask_filter() sends, answered: any bytes at all, in bounded time and memory.
[[nodiscard]] std::string answer_filter(std::string_view request);
[[nodiscard]] std::string filter_answer(const Result<Filter>& filter);

}  // namespace caisson::confine
