// caisson-policies DIRECTORY PRESET PLACES OWN...: reads, checks and merges the policy files of a directory for the launcher,
// which is PID 1 and root and must not parse them itself, with the mounts of the table on fd 0 that lie below PLACES
// (compiler/volumes.h). On fd 1 goes the result, ready policies or everything that is wrong with the files
// (common/policy/frozen.h); status 0 says that it is whole.
// caisson-policies --filter | --plan | --narrow: answers what it reads on fd 0 with a filter (compiler/filter.h), with plans, or
// with a narrowed policy (compiler/planner.h), likewise.
//
// Its answer decides what sessions may do: it is trusted like the launcher. It keeps the launcher's uid, because the checks of
// owners and modes are about files that only root can read or change. Before the first file it gives up what reading does not
// need: every capability but those that override modes, exec, and, where the kernel has Landlock and seccomp, all other calls and
// all files outside the directory.
#include <cap-ng.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "launcher/common/base/sys.h"
#include "launcher/common/build/load_filter.h"
#include "launcher/common/egress/trust.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/filter.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/landlock.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/planner.h"
#include "launcher/compiler/volumes.h"

namespace caisson::reader {
namespace {

constexpr std::string_view kCalls =
    "read write close fstat newfstatat getdents64 lseek fcntl brk mmap munmap mremap mprotect madvise futex getrandom geteuid "
    "clock_gettime rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall getpid gettid tgkill exit exit_group statx";

bool limit(decltype(RLIMIT_CORE) what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return false;
  now.rlim_max = std::min(now.rlim_max, most);
  now.rlim_cur = now.rlim_max;
  return ::setrlimit(what, &now) == 0;
}

// The files of a policy directory, for reading, or no file at all. Its folders may be links to elsewhere.
[[maybe_unused]] Status read_only(const std::optional<std::string>& directory) {
  const int abi = raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi <= 0) return {};
  const raw::LandlockRulesetAttr attr{confine::landlock_fs_rights(abi), 0, 0};
  const Fd ruleset(raw::landlock_create_ruleset(&attr, sizeof attr.handled_access_fs, 0));
  if (directory)
    for (const char* folder : {"", "/seccomp", "/presets"})
      if (const auto fd = sys::open(*directory + folder, O_PATH | O_DIRECTORY);
          fd && raw::landlock_add_path(ruleset.get(), confine::landlock_read(abi, false), fd->get()) != 0)
        return sys_error("Landlock");
  if (!ruleset || raw::landlock_restrict_self(ruleset.get()) != 0) return sys_error("Landlock");
  return {};
}

[[maybe_unused]] Status few_calls() {
  policy::SyscallSet set;
  for (const std::string& name : policy::split(kCalls)) set.allow.push_back({name, {}, {}, ""});
  set.allow.push_back({"openat", {{{2, "masked_eq", O_RDONLY, O_ACCMODE | O_CREAT | O_TRUNC}}}, {}, ""});
  TRY_ASSIGN(const confine::Program calls, confine::compile_seccomp({set}));
  // A kernel or an outer filter that has none to offer; any other failure is ours.
  if (confine::load_seccomp(calls.data(), calls.size()) != 0 && errno != ENOSYS && errno != EINVAL && errno != EPERM)
    return sys_error("seccomp(2)");
  return {};
}

Status give_up([[maybe_unused]] const std::optional<std::string>& directory = {}) {
  // Where sessions have the launcher's uid (T1), they must not reach the program that decides their rights.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("prctl");
  capng_get_caps_process();
  const bool search = capng_have_capability(CAPNG_PERMITTED, CAP_DAC_READ_SEARCH) != 0;
  const bool pass = capng_have_capability(CAPNG_PERMITTED, CAP_DAC_OVERRIDE) != 0;
  capng_clear(CAPNG_SELECT_CAPS);
  constexpr auto kInForce = static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED);
  if (search) capng_update(CAPNG_ADD, kInForce, CAP_DAC_READ_SEARCH);
  else if (pass) capng_update(CAPNG_ADD, kInForce, CAP_DAC_OVERRIDE);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) return sys_error("capabilities");
  if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_CPU, 10)) return sys_error("limits");
#ifndef CAISSON_SANITIZED  // sanitizers take, read and call what they like; such a build is for tests alone
  if (!limit(RLIMIT_DATA, 1U << 30)) return sys_error("limits");
  TRY(read_only(directory));
  TRY(few_calls());
#endif
  return {};
}

std::string problem(const std::string& directory, const std::string& what) {
  policy::LoadResult none;
  none.problems.push_back({directory, 0, "", what, ""});
  return policy::freeze(none);
}

// OWN's places, as the launcher gives them (pid1/session/policies.cc).
enum Own : std::size_t { kPolicies, kHome, kAudit, kRun };

std::string answer(const std::string& directory, const std::string& preset, confine::Volumes volumes) {
  const bool authorities = !egress::operators_authorities().empty();  // later it could not look there any more
  if (const auto done = give_up(directory); !done) return problem(directory, "cannot be read: " + done.error().text());
  auto table = sys::read_fd(0, confine::kMaxMountTable);
  if (table) volumes.table = std::move(*table);
  auto mounts = table ? confine::volume_grants(volumes) : std::unexpected(std::move(table).error());
  if (!mounts) return problem("", mounts.error().text());
  policy::Choice choice{.only = "", .preset = preset, .mounts = std::move(*mounts), .authorities = authorities};
  if (volumes.own.size() > kRun) choice.run = volumes.own[kRun];
  std::string bytes = policy::freeze(policy::load_directory(directory, choice));
  if (bytes.size() <= policy::kMaxFrozen) return bytes;
  return problem(directory, "has policies that take more than " + std::to_string(policy::kMaxFrozen) + " bytes");
}

std::string filter() {
  if (auto done = give_up(); !done) return confine::filter_answer(std::unexpected(std::move(done).error()));
  auto request = sys::read_fd(0, policy::kMaxFrozen);
  return request ? confine::answer_filter(*request) : confine::filter_answer(std::unexpected(std::move(request).error()));
}

// Status 1 says that there is no answer.
int answer_with(std::string (*answer)(std::string_view)) {
  const auto done = give_up();
  const auto request = done ? sys::read_fd(0, policy::kMaxFrozen) : std::unexpected(done.error());
  if (!request) return sys::say("caisson-policies: " + request.error().text()), 1;
  return sys::write_all(1, answer(*request)) ? 0 : 1;
}

}  // namespace
}  // namespace caisson::reader

int main(int argc, char** argv) {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (mode == "--plan") return caisson::reader::answer_with(caisson::confine::answer_plans);
  if (mode == "--narrow") return caisson::reader::answer_with(caisson::confine::answer_narrowing);
  if (argc < 4 && mode != "--filter")
    return std::fputs(
               "usage: caisson-policies DIRECTORY PRESET PLACES OWN...\n       caisson-policies --filter | --plan | --narrow\n",
               stderr),
           64;
  const std::string answer = mode == "--filter"
                                 ? caisson::reader::filter()
                                 : caisson::reader::answer(argv[1], argv[2], {argv[3], {argv + 4, argv + argc}, {}});
  return caisson::sys::write_all(1, answer) ? 0 : 1;
}
