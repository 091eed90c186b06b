// caisson-probe: finds out what this kernel and this outer container permit, for the launcher, which is PID 1 and shall not try
// itself what may go wrong. It has the launcher's rights, because those are what is asked about, and tries each mechanism in
// children of its own. On descriptor 1: the launcher's version, and Features (confine/frozen_features.h).
#include <sys/prctl.h>
#include <unistd.h>

#include "launcher/base/sys.h"
#include "launcher/confine/frozen_features.h"
#include "launcher/policy/frozen_write.h"

int main() {
  // As the launcher does, which exec has undone: without root it is closed to its uid, and so are id maps of what it forks.
  if (::geteuid() != 0 && ::prctl(PR_SET_DUMPABLE, 0) != 0) return 1;
  caisson::policy::Writer out;
  out(caisson::policy::frozen_mark(), caisson::confine::probe_features());
  return caisson::sys::write_all(1, out.bytes) ? 0 : 1;
}
