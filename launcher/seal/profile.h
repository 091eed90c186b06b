// What a service of the launcher's (the agent) may call, open and hold: launcher/seal/services/<name>.json, which is compiled in.
// An operator cannot change it: it bounds what takes the service over, not what a session may do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/common/policy/policy.h"

namespace caisson::seal {

struct Profile {
  policy::SyscallSet calls;  // as policies/seccomp/<set>.json, with tgkill to its own threads
  std::vector<std::string> execute, read,
      write;                     // files and trees; write implies read, execute implies read. Absent ones: nothing
  std::uint64_t data_bytes = 0;  // RLIMIT_DATA (setrlimit(2)): beyond it the service gets no memory and ends itself
};

// Errors: not_found: no service has this name.
[[nodiscard]] Result<Profile> profile_of(std::string_view service);
// Errors: invalid_argument: what is wrong, and where. Nothing is optional, and nothing else may be there.
[[nodiscard]] Result<Profile> parse_profile(std::string_view service, std::string_view text);

}  // namespace caisson::seal
