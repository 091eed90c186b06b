// What is read of a process that waits in a call. It is true at that moment: whoever uses it asks afterwards whether the process
// still waits, else the number may be another's by then.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "launcher/common/base/fd.h"

namespace caisson::connector {

// `size` bytes at `address` in its memory: 0, or an errno. EACCES: the process lets nobody read it (not dumpable).
[[nodiscard]] int read_memory(pid_t tid, std::uint64_t address, void* to, std::size_t size);
// The socket that the descriptor is: its inode, or 0 and an errno.
[[nodiscard]] std::uint64_t socket_of(const Fd& proc, pid_t tid, int fd, int& error);

}  // namespace caisson::connector
