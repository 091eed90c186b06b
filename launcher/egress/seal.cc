#include "launcher/egress/seal.h"

#include <cstdlib>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/common/base/fd.h"

namespace caisson::egress {

#ifdef CAISSON_SANITIZED  // sanitizers call what they like; such a build is for tests alone
Status seal() { return {}; }
#else
Status seal() {
  const char* number = std::getenv("CAISSON_SECCOMP_FD");
  if (number == nullptr) return fail(Code::invalid_argument, "CAISSON_SECCOMP_FD is not set: caisson-seal starts this program");
  const Fd fd(std::atoi(number));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("seccomp program");
  std::vector<sock_filter> program(static_cast<std::size_t>(st.st_size) / sizeof(sock_filter));
  const auto bytes = static_cast<ssize_t>(program.size() * sizeof(sock_filter));
  if (program.empty() || program.size() > 4096 || ::pread(fd.get(), program.data(), static_cast<std::size_t>(bytes), 0) != bytes)
    return fail(Code::invalid_argument, "the seccomp program is not usable");
  sock_fprog prog{static_cast<unsigned short>(program.size()), program.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0) return sys_error("seccomp");
  // Post-condition: without the filter this would be EFAULT.
  if (::syscall(SYS_execve, nullptr, nullptr, nullptr) != -1 || errno != EPERM)
    return fail(Code::internal, "seccomp is not in force");
  return {};
}
#endif

}  // namespace caisson::egress
