// caisson-seal SERVICE UID PROGRAM [ARGUMENT...]: gives up what the profile of the service (profile.h) does not grant, and
// becomes PROGRAM. The launcher, or caisson-gate, starts it for each start of the service: with its own rights, an environment
// made for the service, and as fd 3 the service's socket to whoever starts it. A program of its own, so that PID 1 holds none of
// this code. UID "-": the launcher cannot change uids.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"
#include "launcher/compiler/filter.h"
#include "launcher/compiler/landlock.h"
#include "launcher/seal/profile.h"
#include "launcher/seal/sealed_memfd.h"

namespace caisson::seal {
namespace {

constexpr int kSeccompFd = 4;
// What the launcher does not say, because it is the same for every service.
constexpr std::pair<const char*, const char*> kSameForAll[] = {
    {"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"CAISSON_SECCOMP_FD", "4"}};

void add_rule(int ruleset, const std::string& path, std::uint64_t access) {
  auto fd = sys::open(path, O_PATH);
  struct stat st{};
  if (!fd || ::fstat(fd->get(), &st) != 0) return;  // absent: nothing to allow
  if (!S_ISDIR(st.st_mode)) access &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
  (void)raw::landlock_add_path(ruleset, access, fd->get());
}

Result<Fd> landlock_of(const Profile& profile, const std::string& program) {
  const int abi = raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi <= 0) return Fd();
  raw::LandlockRulesetAttr attr{confine::landlock_fs_rights(abi), 0, confine::landlock_scopes(abi)};
  Fd ruleset(raw::landlock_create_ruleset(&attr, attr.scoped != 0 ? sizeof attr : sizeof attr.handled_access_fs, 0));
  if (!ruleset) return sys_error("landlock_create_ruleset");
  const std::uint64_t read = confine::landlock_read(abi, false), run = confine::landlock_read(abi, true);
  add_rule(ruleset.get(), program, run);
  for (const std::string& path : profile.execute) add_rule(ruleset.get(), path, run);
  for (const std::string& path : profile.read) add_rule(ruleset.get(), path, read);
  for (const std::string& path : profile.write) add_rule(ruleset.get(), path, read | LANDLOCK_ACCESS_FS_WRITE_FILE);
  return ruleset;
}

// Its own filter comes late, because the dynamic linker needs more than the agent. Until then one thing is refused already: to
// have a child. A child would outlive the agent, be counted by nobody and hold its end of the socket.
bool refuse_children() {
#if defined(__x86_64__)
  constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64, kForeign = 0x40000000;  // x32 calls
#else
  constexpr std::uint32_t kArch = AUDIT_ARCH_AARCH64, kForeign = 0xffffffff;
#endif
  constexpr sock_filter kRefuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kForeign, 0, 1),
      kRefuse,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
      kRefuse,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      kRefuse,
#if defined(__x86_64__)
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 0, 1),
      kRefuse,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vfork, 0, 1),
      kRefuse,
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Everything opened first; then one thing after the other is given up.
// command: the program with its arguments, up to nullptr.
Status become(const char* service, const char* uid_text, char** command) {
  const char* program = command[0];
  uid_t uid = 0;
  const bool change_uid = std::strcmp(uid_text, "-") != 0;
  const char* end = uid_text + std::strlen(uid_text);
  if (change_uid && (std::from_chars(uid_text, end, uid).ptr != end || uid == 0))
    return fail(Code::invalid_argument, "not a uid above 0: " + quote(uid_text));
  TRY_ASSIGN(const Profile profile, profile_of(service));
  TRY_ASSIGN(const Fd executable, sys::open(program, O_PATH));
  TRY_ASSIGN(const Fd landlock, landlock_of(profile, program));
  TRY_ASSIGN(const confine::Program calls, confine::compile_seccomp({profile.calls}));
  TRY_ASSIGN(const Fd seccomp,
             sealed_memfd("service-seccomp", {reinterpret_cast<const char*>(calls.data()), calls.size() * sizeof(sock_filter)}));
  // Fd 4 may be one of these; the copies are out of its way.
  const int program_fd = ::fcntl(executable.get(), F_DUPFD_CLOEXEC, 16), seccomp_fd = ::fcntl(seccomp.get(), F_DUPFD_CLOEXEC, 16),
            landlock_fd = landlock ? ::fcntl(landlock.get(), F_DUPFD_CLOEXEC, 16) : -1;
  for (const auto& [name, value] : kSameForAll)
    if (::setenv(name, value, 1) != 0) return sys_error("setenv");
  const rlimit memory{profile.data_bytes, profile.data_bytes};
  if (program_fd < 0 || (landlock && landlock_fd < 0) || ::dup2(seccomp_fd, kSeccompFd) < 0)
    return sys_error("arrange descriptors");
  if (::setrlimit(RLIMIT_DATA, &memory) != 0) return sys_error("setrlimit RLIMIT_DATA");
  confine::caps_prepare();
  if (const int failed = confine::give_up(uid, change_uid, landlock_fd); failed != 0) ::_exit(failed);
  if (!refuse_children()) return sys_error("seccomp");
  raw::execveat(program_fd, "", command, environ, AT_EMPTY_PATH);
  return sys_error("execute " + quote(program));
}

}  // namespace
}  // namespace caisson::seal

int main(int argc, char** argv) {
  if (argc < 4) return std::fputs("usage: caisson-seal SERVICE UID|- PROGRAM [ARGUMENT...]\n", stderr), 64;
  const caisson::Status done = caisson::seal::become(argv[1], argv[2], argv + 3);
  return std::fprintf(stderr, "caisson-seal: %s\n", done.error().text().c_str()), 120;
}
