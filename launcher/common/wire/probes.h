// Canary probes: small attacks that caisson-init makes in a child of its own, in a session that serves nothing else, before
// the first real session of a policy starts. init only carries them out; what each must give is decided by
// compiler/claims.cc from the plan. Shared by both, so that numbers and names are one list.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::init {

enum class Probe : std::uint32_t {
  read_ungranted,    // open a file outside the grants (Targets::outside) for reading
  write_read_only,   // create a file in /usr
  write_root,        // mkdir in /
  write_proc,        // open a file of /proc for writing that everybody may write
  proc_sys,          // open /proc/sys/kernel/core_pattern for writing
  read_init,         // open /proc/1/environ
  kill_launcher,     // kill(Targets::launcher, 0)
  kill_builder,      // kill(Targets::builder, 0)
  read_builder,      // open /proc/<Targets::builder>/mem
  parent_is_init,    // getppid(): 1 in a PID namespace
  connect_launcher,  // connect to 127.0.0.1, Targets::port
  connect_metadata,  // connect to 169.254.169.254, port 80
  socket_vsock,
  socket_mptcp,
  unshare_user,
  keyctl,
  io_uring,
  personality,   // ADDR_NO_RANDOMIZE
  tiocsti,       // with garbage in the upper half of the request
  unknown_call,  // a number that no kernel has
  i386_call,     // getpid by int 0x80
  x32_call,      // getpid by its x32 number
  set_uid_0,     // setresuid(0, 0, 0)
  chroot,        // chroot("/")
  raise_limit,   // the hard limit of open files, by one
  no_new_privs,  // prctl(PR_GET_NO_NEW_PRIVS)
  nested,       // what capabilities in nested namespaces reach (init/probes.cc): EPERM if nothing, else the number of the attempt
  descriptors,  // how many of 5 to 255 are open: 0-2, the launcher's socket and a signalfd are init's own
};
inline constexpr std::size_t kProbeCount = static_cast<std::size_t>(Probe::descriptors) + 1;
// Their names in reports and statements, in this order.
inline constexpr char kProbeNames[] =
    "read_ungranted write_read_only write_root write_proc proc_sys read_init kill_launcher kill_builder read_builder "
    "parent_is_init connect_launcher "
    "connect_metadata socket_vsock socket_mptcp unshare_user keyctl io_uring personality tiocsti unknown_call i386_call x32_call "
    "set_uid_0 chroot raise_limit no_new_privs nested descriptors";

struct Targets {
  std::int32_t launcher;  // pid, as the launcher sees itself
  std::int32_t builder;   // the same, of what made this session
  std::uint32_t port;     // where the launcher or its agent listens
  char outside[512];      // NUL-terminated
};

}  // namespace caisson::init
