// Opening files by the names that a client gives. A name is resolved once, by the kernel, and everything else is done with the
// descriptor: what the name leads to a moment later does not matter. What may be opened is decided by the walls of the session,
// the same as for its shell.
#pragma once

#include <linux/openat2.h>
#include <sys/stat.h>

#include "agent/worker/outcome.h"
#include "launcher/base/fd.h"

namespace caisson::worker {

// openat2(2), asked again where the kernel says so; errno as it is left, -1 on failure. ENOSYS in sessions without a mount
// namespace before Linux 6.10 (launcher/confine/README.md, T0 and T1).
[[nodiscard]] int openat2(int dir, const char* path, const open_how& how);

// As the client means it: relative paths start at the home. Errors: empty, NUL.
[[nodiscard]] Done<std::string> absolute(const std::string& path);

// openat2(2) without magic links (/proc/self/fd), close-on-exec, never a controlling terminal, never waiting for a FIFO's other
// end.
[[nodiscard]] Done<Fd> open_path(const std::string& path, int flags, mode_t mode = 0);

struct Opened {
  Fd fd;
  struct stat st{};
  bool created = false;
  Fd directory;  // of what was created, with its name there: to take it away again
  std::string name;
};
// A regular file. Directories are EISDIR; FIFOs, sockets and devices are refused, and never read or waited for.
[[nodiscard]] Done<Opened> open_regular(const std::string& path, int flags);
[[nodiscard]] Done<Opened> regular(Fd fd, const std::string& path);  // the same of what is open
// For writing (flags: O_WRONLY or O_RDWR, with O_APPEND): made when it is missing, its parents as well. Not truncated.
[[nodiscard]] Done<Opened> open_for_writing(const std::string& path, int flags);
[[nodiscard]] Done<Fd> open_directory(const std::string& path);

// All of it, at most `most` bytes: EFBIG beyond.
[[nodiscard]] Done<std::string> read_whole(const Fd& fd, const std::string& path, std::size_t most);
// At `offset` (negative: at the file's position). GIVEs ENOSPC, EFBIG, EDQUOT as they come.
[[nodiscard]] Done<void> write_all_at(const Fd& fd, const std::string& path, std::string_view bytes, std::int64_t offset);
// The file is these bytes and nothing else.
[[nodiscard]] Done<void> overwrite(const Fd& fd, const std::string& path, std::string_view bytes);

}  // namespace caisson::worker
