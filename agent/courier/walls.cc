#include "agent/courier/walls.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"

namespace caisson::courier {
namespace {

constexpr int kPortsAbi = 4;
constexpr std::uint64_t kDnsPort = 53;  // by TCP where an answer is too long for UDP
constexpr const char* kReadable[] = {"/etc/ssl",
                                     "/usr/share/ca-certificates",
                                     "/usr/local/share/ca-certificates",
                                     "/usr/lib/ssl",
                                     "/etc/caisson/ca",
                                     "/etc/resolv.conf",
                                     "/etc/hosts",
                                     "/etc/nsswitch.conf",
                                     "/etc/host.conf",
                                     "/etc/gai.conf",
                                     "/dev/urandom"};

// Those of ABI 1, and what later ones add.
std::uint64_t rights(int abi) {
  std::uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  if (abi >= 2) all |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3) all |= LANDLOCK_ACCESS_FS_TRUNCATE;
  if (abi >= 5) all |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  return all;
}

// What is absent, or out of reach already, needs no rule.
void allow_reading(int ruleset, const char* path) {
  const Fd fd(::open(path, O_PATH | O_CLOEXEC));
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) != 0) return;
  const std::uint64_t directory = S_ISDIR(st.st_mode) ? LANDLOCK_ACCESS_FS_READ_DIR : 0;
  (void)raw::landlock_add_path(ruleset, LANDLOCK_ACCESS_FS_READ_FILE | directory, fd.get());
}

}  // namespace

Status close_in(const Destinations& destinations) {
  const int abi = raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi <= 0) return {};
  const bool ports = abi >= kPortsAbi;
  const raw::LandlockRulesetAttr attr{rights(abi), ports ? LANDLOCK_ACCESS_NET_CONNECT_TCP | LANDLOCK_ACCESS_NET_BIND_TCP : 0, 0};
  const std::size_t size = ports ? offsetof(raw::LandlockRulesetAttr, scoped) : sizeof attr.handled_access_fs;
  const Fd ruleset(raw::landlock_create_ruleset(&attr, size, 0));
  if (!ruleset) return sys_error("landlock_create_ruleset");
  for (const char* path : kReadable) allow_reading(ruleset.get(), path);
  std::vector<std::uint64_t> open{kDnsPort};
  if (destinations.keys) open.push_back(destinations.keys->port);
  if (destinations.collector) open.push_back(destinations.collector->url.port);
  for (const std::uint64_t port : open)
    if (ports && raw::landlock_add_port(ruleset.get(), LANDLOCK_ACCESS_NET_CONNECT_TCP, port) != 0)
      return sys_error("landlock_add_rule");
  if (raw::landlock_restrict_self(ruleset.get()) != 0) return sys_error("landlock_restrict_self");
  // Post-condition: caisson-seal's ruleset lets this file be read, for the dynamic linker.
  if (const Fd linker(::open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC)); linker)
    return fail(Code::internal, "Landlock is not in force");
  return {};
}

}  // namespace caisson::courier
