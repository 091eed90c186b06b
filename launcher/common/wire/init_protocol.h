// Messages between the launcher and caisson-init over one SOCK_SEQPACKET pair. Fixed-size native structs: both ends are
// built together and run on one kernel. The launcher treats all that comes from init as hostile: exact sizes, known
// types, known exec ids, at most one descriptor; anything else ends the session.
#pragma once

#include <cstdint>

namespace caisson::init {

inline constexpr int kSocketFd = 3;                       // init's end of the pair
inline constexpr std::uint32_t kMaxRequest = 128 * 1024;  // header plus strings
inline constexpr std::uint32_t kMaxStrings = 4096;        // argv and environment together

enum class Type : std::uint32_t { exec = 1, signal, ready, started, failed, exited, probe, probed, listener, go, child, steps };
enum class Stdio : std::uint32_t { pipes = 0, pty = 1 };
enum class Scope : std::uint32_t { group = 0, posix_session = 1 };
// Where an exec failed before the program ran.
enum class Step : std::uint32_t { none = 0, request, pty, fork, setsid, stdio, chdir, exec, go };

[[nodiscard]] constexpr const char* step_name(Step step) {
  constexpr const char* kNames[] = {"none", "request", "pty", "fork", "setsid", "stdio", "chdir", "exec", "go"};
  return static_cast<std::uint32_t>(step) < 9 ? kNames[static_cast<std::uint32_t>(step)] : "unknown";
}

// launcher -> init. exec: followed by cwd, argv..., environment..., each NUL-terminated; descriptors: in pipes mode the
// read end of stdin (when has_stdin), the write ends of stdout and stderr. The next message is go with the same exec_id, and the
// process makes no execve before it has come: the launcher writes its record while the process is made. probe: followed by
// Targets (probes.h); answered by one probed for each Probe, in order.
struct Request {
  Type type;
  std::uint32_t exec_id;
  Stdio stdio;
  std::uint32_t has_stdin;
  std::uint32_t cols, rows;
  std::uint32_t argc, envc;
  std::uint32_t umask;
  std::uint32_t signal;  // type signal
  Scope scope;           // type signal
};

// init -> launcher. started in pty mode carries the master as its one descriptor. Before `ready` others speak: caisson-builder
// with `child`, the number of the process that it made, with its pidfd; then that process, which becomes init, with `steps`
// (Steps) and, once, `listener`, the descriptor to which the filter tells of refused calls.
struct Reply {
  Type type;
  std::uint32_t exec_id;
  std::int32_t pid;       // started: as seen inside; child: as the launcher sees it
  Step step;              // failed
  std::int32_t error;     // failed, probed: errno
  std::int32_t signaled;  // exited, probed: 1 when ended by a signal
  std::int32_t status;    // exited: exit code or signal number; probed: what the attack returned, or the signal
  std::uint32_t reserved;
  std::int64_t user_us, system_us, max_rss_bytes;  // exited: rusage of the process and its waited-for children
};

}  // namespace caisson::init
