#include "launcher/common/kernel/caps.h"

#include <cap-ng.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::confine {
namespace {

constexpr unsigned long kSecurebits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                      SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

}  // namespace

void caps_prepare() { capng_clear(CAPNG_SELECT_BOTH); }

bool caps_drop_bounding() {
  bool refused = false;
  for (int cap = 0; cap <= 63; ++cap) {
    if (::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0) continue;
    const int held = ::prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
    if (held < 0) break;  // past the kernel's last capability
    if (held == 1) refused = true;
  }
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return false;
  if (::prctl(PR_SET_SECUREBITS, kSecurebits, 0, 0, 0) != 0) refused = true;
  if (refused) errno = EPERM;
  return !refused;
}

bool caps_change_uid() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1U << CAP_SETUID)) != 0;
}

bool caps_never() {
  for (int cap = 0; cap <= 63; ++cap)
    if (const int held = ::prctl(PR_CAPBSET_READ, cap, 0, 0, 0); held != 0) return held < 0 && cap != 0;
  return true;
}

bool caps_drop_all() {
  capng_setpid(0);  // "self": libcap-ng remembers the pid of the process that called it first, our parent
  capng_clear(CAPNG_SELECT_CAPS);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  for (const auto& d : data)
    if (d.effective != 0 || d.permitted != 0 || d.inheritable != 0) return errno = EPERM, false;
  return true;
}

}  // namespace caisson::confine
