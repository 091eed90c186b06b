// caisson-probe: finds out what this kernel and this outer container permit, for the launcher, which is PID 1 and shall not try
// itself what may go wrong. It has the launcher's rights, because those are what is asked about, and tries each mechanism in
// children of its own. Arguments: the settings CAISSON_AUTH and CAISSON_TRUSTED_PEERS, for statements. On descriptor 1: the
// launcher's version, and Features (common/confine/frozen_features.h).
#include <sys/prctl.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/frozen_features.h"
#include "launcher/common/policy/frozen.h"
#include "launcher/common/probing/probe_features.h"
#include "launcher/probe/front_door.h"

int main(int argc, char** argv) {
  // As the launcher does, which exec has undone: without root it is closed to its uid, and so are id maps of what it forks.
  if (argc != 3 || (::geteuid() != 0 && ::prctl(PR_SET_DUMPABLE, 0) != 0)) return 1;
  caisson::confine::Features features = caisson::confine::probe_features();
  auto facts = caisson::json::parse(features.outside);
  if (!facts) return 1;
  (*facts)["front_door"] = caisson::front_door(argv[1], argv[2]);
  features.outside = caisson::json::dump(*facts);
  caisson::policy::Writer out;
  out(caisson::policy::frozen_mark(), features);
  return caisson::sys::write_all(1, out.bytes) ? 0 : 1;
}
