// System calls as Result-returning functions, and the ones that Debian 12's glibc 2.36 or its kernel headers (6.1) lack.
// The only header where raw descriptor numbers are parameters.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::sys {

// open(2), always O_CLOEXEC.
[[nodiscard]] Result<Fd> open(const std::string& path, int flags, mode_t mode = 0);
[[nodiscard]] Result<Fd> openat(int dir, const std::string& path, int flags, mode_t mode = 0);
// openat2(2), Linux 5.6: `resolve` is a mask of RESOLVE_*. The kernel refuses what the mask forbids at every component,
// so no string check of ours can race with a rename.
[[nodiscard]] Result<Fd> openat2(int dir, const std::string& path, std::uint64_t flags, std::uint64_t resolve, mode_t mode = 0);
// pidfd_open(2), Linux 5.3.
[[nodiscard]] Result<Fd> pidfd_open(pid_t pid);
// pidfd_send_signal(2), Linux 5.1.
[[nodiscard]] Status pidfd_send_signal(int pidfd, int signal);
// Waits for our child to end, across interrupting signals (waitpid(2)). Returns its wait status, or -1 if the pid is not our
// child. Async-signal-safe.
int reap(pid_t child);
[[nodiscard]] Result<std::pair<Fd, Fd>> pipe();            // read end, write end; O_CLOEXEC
[[nodiscard]] Result<std::pair<Fd, Fd>> seqpacket_pair();  // SOCK_CLOEXEC | SOCK_NONBLOCK on the first only
[[nodiscard]] Status set_nonblocking(int fd, bool on);

// Whole file, at most max_bytes (Code::limit beyond). Works for /proc files, whose size is not known beforehand.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t max_bytes);
[[nodiscard]] Result<std::string> read_fd(int fd, std::size_t max_bytes);
// Where another of our programs is: beside our own executable, in the agent's folder of a build tree, or in /usr/lib/caisson.
[[nodiscard]] std::string program_path(const std::string& name);
// The value of a line "name:\tvalue" of /proc/<pid>/status; "" without one.
[[nodiscard]] std::string status_field(const std::string& status, std::string_view name);
// Whether the process is on its way out or gone: PF_EXITING of the kernel's include/linux/sched.h, in field 9 of
// /proc/<pid>/stat (proc_pid_stat(5)). From then on its files in /proc fail one after the other. That it cannot be found out is
// no.
[[nodiscard]] bool exiting(pid_t pid);
// One write(2) of all of `content` to an existing file (procfs, cgroupfs).
[[nodiscard]] Status write_file(const std::string& path, std::string_view content);
[[nodiscard]] Status write_file_at(int dir, const std::string& path, std::string_view content);
[[nodiscard]] Status write_all(int fd, std::string_view content);

// A uid that no session (T0: 21000 to 29999) and no workspace has: the real and saved uid of our children that act for a tenant,
// whose uid is their effective one. kill(2) asks for the target's real and saved uid, so a tenant cannot stop a child for which
// we wait.
inline constexpr uid_t kNobodysUid = 30000;
// The same, of the process that ends all others of a uid: kill(-1) reaches those of its own real uid, too (kill(2)), so it shares
// that with nothing that must go on, such as the homes' helper.
inline constexpr uid_t kEndingUid = 40000;

// Whether write(2) would not wait: at once, or within the time. Up to PIPE_BUF bytes, where it is a pipe (pipe(7)).
[[nodiscard]] bool writable(int fd, int timeout_ms);
// A line for whoever runs the launcher, on stderr. Lost where nothing can be written there now: who does not read what we say
// must not stop us. At most PIPE_BUF bytes.
void say(const std::string& line);

// CLOCK_MONOTONIC in microseconds; CLOCK_REALTIME in nanoseconds since the epoch.
[[nodiscard]] std::int64_t monotonic_us();
[[nodiscard]] std::int64_t realtime_ns();
// RFC 3339 in UTC with microseconds: 2026-01-02T03:04:05.000006Z.
[[nodiscard]] std::string rfc3339(std::int64_t realtime_ns);
// `bytes` random bytes from getrandom(2) as lower-case hex. Blocks only before the kernel's pool is seeded.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace caisson::sys
