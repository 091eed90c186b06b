// The architecture that a filter is for, as seccomp(2) says it of a call.
#pragma once

#include <linux/audit.h>

#include <cstdint>

namespace caisson {

#if defined(__x86_64__)
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_X86_64;
#else
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
#endif

}  // namespace caisson
