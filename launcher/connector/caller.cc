#include "launcher/connector/caller.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

namespace caisson::connector {
namespace {

constexpr std::string_view kSocket = "socket:[";

char* put(char* at, char* end, long number) { return std::to_chars(at, end, number).ptr; }

}  // namespace

int read_memory(pid_t tid, std::uint64_t address, void* to, std::size_t size) {
  const iovec local{to, size}, remote{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(tid, &local, 1, &remote, 1, 0);
  if (got == static_cast<ssize_t>(size)) return 0;
  return got < 0 && errno == EPERM ? EACCES : EFAULT;
}

std::uint64_t socket_of(const Fd& proc, pid_t tid, int fd, int& error) {
  constexpr std::string_view kFolder = "/fd/";
  char path[48];
  char* at = put(path, path + 16, tid);
  at += kFolder.copy(at, kFolder.size());
  *put(at, at + 16, fd) = '\0';
  char target[64];
  const ssize_t size = ::readlinkat(proc.get(), path, target, sizeof target);
  if (size < 0) return error = errno == ENOENT ? EBADF : EACCES, 0;
  const std::string_view text(target, static_cast<std::size_t>(size));
  std::uint64_t inode = 0;
  if (!text.starts_with(kSocket)) return error = ENOTSOCK, 0;
  std::from_chars(target + kSocket.size(), target + text.size(), inode);
  return inode;
}

}  // namespace caisson::connector
