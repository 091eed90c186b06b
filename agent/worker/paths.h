// Opening files by the names that a client gives. The kernel resolves a name once, and everything else uses the descriptor, so a
// later change of the name does not matter. The walls of the session decide what may be opened, as for its shell.
#pragma once

#include <linux/openat2.h>
#include <sys/stat.h>

#include "agent/worker/outcome.h"
#include "launcher/common/base/fd.h"

namespace caisson::worker {

// openat2(2), repeated on EAGAIN; -1 on failure, with errno set. ENOSYS in sessions without a mount namespace before Linux 6.10
// (launcher/common/confine/README.md, T0 and T1).
[[nodiscard]] int openat2(int dir, const char* path, const open_how& how);

// The path that the client means: relative paths start at the home. Errors: empty, NUL.
[[nodiscard]] Done<std::string> absolute(const std::string& path);

// openat2(2) without magic links (/proc/self/fd), close-on-exec, never a controlling terminal, never waiting for a FIFO's other
// end.
[[nodiscard]] Done<Fd> open_path(const std::string& path, int flags, mode_t mode = 0);

struct Opened {
  Fd fd;
  struct stat st{};
  bool created = false;
  Fd directory;  // of a created file, with its name there, for its removal
  std::string name;
};
// Opens a regular file. Directories are EISDIR; FIFOs, sockets and devices are refused without being read or awaited.
[[nodiscard]] Done<Opened> open_regular(const std::string& path, int flags);
[[nodiscard]] Done<Opened> regular(Fd fd, const std::string& path);  // the same for an open descriptor
// Opens for writing (flags: O_WRONLY or O_RDWR, with O_APPEND). A missing file is created with its parents. Does not truncate.
[[nodiscard]] Done<Opened> open_for_writing(const std::string& path, int flags);
[[nodiscard]] Done<Fd> open_directory(const std::string& path);

// The whole content, at most `most` bytes; EFBIG beyond.
[[nodiscard]] Done<std::string> read_whole(const Fd& fd, const std::string& path, std::size_t most);
// Writes at `offset` (negative: at the file's position). Returns ENOSPC, EFBIG and EDQUOT unchanged.
[[nodiscard]] Done<void> write_all_at(const Fd& fd, const std::string& path, std::string_view bytes, std::int64_t offset);
// Replaces the file's content by these bytes.
[[nodiscard]] Done<void> overwrite(const Fd& fd, const std::string& path, std::string_view bytes);

}  // namespace caisson::worker
