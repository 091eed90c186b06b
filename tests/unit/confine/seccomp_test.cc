// The seccomp compiler against an interpreter of classic BPF: what a program answers is computed here from the kernel's
// definition of the instructions, so that a wrong jump shows without loading anything.
#include "launcher/compiler/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "launcher/common/tables/path_calls.h"
#include "launcher/compiler/load.h"
#include "tests/unit/confine/bpf.h"

namespace caisson::confine {
namespace {

using policy::ArgRule;
using policy::SyscallSet;

constexpr std::uint32_t kEacces = SECCOMP_RET_ERRNO | EACCES, kEnosys = SECCOMP_RET_ERRNO | ENOSYS;

std::uint32_t answer(const Program& program, long nr, std::uint64_t arg0 = 0, std::uint64_t arg1 = 0,
                     std::uint32_t arch = AUDIT_ARCH_X86_64) {
  seccomp_data data{};
  data.nr = static_cast<int>(nr);
  data.arch = arch;
  data.args[0] = arg0;
  data.args[1] = arg1;
  return interpret(program, data);
}

Program compile(const std::vector<SyscallSet>& sets) {
  auto program = compile_seccomp(sets);
  EXPECT_TRUE(program) << program.error().text();
  return program ? *program : Program{};
}

Program compile_rule(std::vector<std::vector<ArgRule>> any_of, std::vector<std::vector<ArgRule>> refuse_if) {
  SyscallSet set;
  set.allow.push_back({"ioctl", std::move(any_of), std::move(refuse_if), ""});
  return compile({set});
}

TEST(Seccomp, EveryNumberGetsItsAnswer) {
  SyscallSet set;
  for (const char* name : {"read", "write", "close", "exit_group", "openat", "getpid"}) set.allow.push_back({name, {}, {}, ""});
  set.refuse = {"ptrace", "mount"};
  const Program program = compile({set});
  for (long nr = 0; nr < 700; ++nr) {
    const bool allowed =
        nr == SYS_read || nr == SYS_write || nr == SYS_close || nr == SYS_exit_group || nr == SYS_openat || nr == SYS_getpid;
    const bool refused = nr == SYS_ptrace || nr == SYS_mount;
    EXPECT_EQ(answer(program, nr), allowed ? SECCOMP_RET_ALLOW : refused ? kEperm : kEnosys) << nr;
  }
}

// More than a conditional jump can reach, in both directions of every kind of answer.
TEST(Seccomp, EveryNumberOfALongProgramGetsItsAnswer) {
  SyscallSet set;
  const auto conditional = [](long nr) { return nr % 4 == 1 || (nr > 200 && nr < 260); };
  const auto name_of = [](long nr) -> std::string {
    char* name = nr == SYS_clone3 ? nullptr : seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(nr));
    std::string out = name != nullptr ? name : "";
    std::free(name);
    return out;
  };
  for (long nr = 0; nr < 460; ++nr) {
    const std::string name = name_of(nr);
    if (name.empty() || nr % 4 == 3) continue;
    if (nr % 4 == 2) set.refuse.push_back(name);
    else if (conditional(nr)) set.allow.push_back({name, {{{0, "eq", 7, ~0ULL}}, {{1, "gt", 9, ~0ULL}}}, {}, ""});
    else set.allow.push_back({name, {}, {}, ""});
  }
  const Program program = compile({set});
  EXPECT_GT(program.size(), 1000U);
  for (long nr = 0; nr < 700; ++nr) {
    const bool known = nr < 460 && nr % 4 != 3 && !name_of(nr).empty();
    const auto expected = [&](bool met) {
      if (!known) return kEnosys;
      return nr % 4 == 2 || (conditional(nr) && !met) ? kEperm : static_cast<std::uint32_t>(SECCOMP_RET_ALLOW);
    };
    EXPECT_EQ(answer(program, nr, 7), expected(true)) << nr;
    EXPECT_EQ(answer(program, nr, 1, 10), expected(true)) << nr;
    EXPECT_EQ(answer(program, nr, 1, 9), expected(false)) << nr;
  }
}

TEST(Seccomp, ForeignArchitecturesAreKilled) {
  const Program program = compile({SyscallSet{}});
  EXPECT_EQ(answer(program, 3, 0, 0, AUDIT_ARCH_I386), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(answer(program, 0x40000000L | SYS_read), SECCOMP_RET_KILL_PROCESS) << "x32";
}

TEST(Seccomp, Clone3IsUnknownWhateverASetSays) {
  SyscallSet set;
  set.allow.push_back({"clone3", {}, {}, ""});
  EXPECT_EQ(answer(compile({set}), SYS_clone3), kEnosys);
}

TEST(Seccomp, RefuseWinsOverAllow) {
  SyscallSet allow, refuse;
  allow.allow.push_back({"bpf", {}, {}, ""});
  refuse.refuse = {"bpf"};
  EXPECT_EQ(answer(compile({allow, refuse}), SYS_bpf), kEperm);
}

TEST(Seccomp, PretendIsSuccessWhateverOtherSetsSay) {
  SyscallSet allow, refuse, pretend;
  allow.allow = {{"chown", {}, {}, ""}, {"getuid", {}, {}, ""}};
  refuse.refuse = {"setuid"};
  pretend.pretend = {
      {"chown", 0, {}}, {"setuid", 0, {}}, {"socket", EPROTONOSUPPORT, {{{0, "masked_eq", 16, ~0U}, {2, "masked_eq", 9, ~0U}}}}};
  allow.allow.push_back({"socket", {{{0, "masked_eq", 1, ~0U}}}, {}, ""});
  for (const Refusal told : {Refusal::answer, Refusal::notify, Refusal::observe}) {
    const auto program = compile_seccomp({pretend, allow, refuse}, told);
    ASSERT_TRUE(program);
    EXPECT_EQ(answer(*program, SYS_chown), std::uint32_t{SECCOMP_RET_ERRNO});
    EXPECT_EQ(answer(*program, SYS_setuid), std::uint32_t{SECCOMP_RET_ERRNO});
    EXPECT_EQ(answer(*program, SYS_getuid), std::uint32_t{SECCOMP_RET_ALLOW});
    const auto socket = [&program](std::uint64_t family, std::uint64_t protocol) {
      seccomp_data data{.nr = SYS_socket, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = 0, .args = {family, 3, protocol}};
      return interpret(*program, data);
    };
    const std::uint32_t refused = told == Refusal::answer ? kEperm : std::uint32_t{SECCOMP_RET_USER_NOTIF};
    EXPECT_EQ(socket(16, 9), SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    EXPECT_EQ(socket(16, 9 | 1ULL << 32), SECCOMP_RET_ERRNO | EPROTONOSUPPORT) << "the kernel ignores the upper half";
    EXPECT_EQ(socket(1, 9), std::uint32_t{SECCOMP_RET_ALLOW});
    EXPECT_EQ(socket(16, 8), refused);
  }
}

TEST(Seccomp, SetsAreAUnion) {
  SyscallSet a, b;
  a.allow.push_back({"socket", {{{0, "masked_eq", 1, 0xffffffff}}}, {}, ""});
  b.allow.push_back({"socket", {{{0, "masked_eq", 2, 0xffffffff}}}, {}, ""});
  const Program program = compile({a, b});
  EXPECT_EQ(answer(program, SYS_socket, 1), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(program, SYS_socket, 2), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(program, SYS_socket, 40), kEperm);
}

// What a listener is told of is what was answered EPERM, and nothing else is any different.
TEST(Seccomp, ToldIsExactlyWhatWouldBeRefused) {
  SyscallSet set;
  set.name = "some";
  set.allow.push_back({"read", {}, {}, ""});
  set.allow.push_back({"socket", {{{0, "masked_eq", 1, 0xffffffff}}}, {}, ""});
  set.allow.push_back({"ioctl", {}, {{{1, "masked_eq", 0x5412, 0xffffffff}}}, ""});
  set.refuse = {"ptrace", "mount", "clone3"};
  const Program answers = compile({set});
  const auto tells = compile_seccomp({set}, Refusal::notify);
  ASSERT_TRUE(tells);
  ASSERT_EQ(tells->size(), answers.size());
  for (long nr = 0; nr < 700; ++nr)
    for (const std::uint64_t arg : {0ULL, 1ULL, 0x5412ULL}) {
      const std::uint32_t was = answer(answers, nr, arg, arg), now = answer(*tells, nr, arg, arg);
      EXPECT_EQ(now, was == kEperm ? std::uint32_t{SECCOMP_RET_USER_NOTIF} : was) << nr << " " << arg;
    }
  EXPECT_EQ(answer(*tells, SYS_clone3), kEnosys) << "C libraries try it all day";
  EXPECT_EQ(answer(*tells, 3, 0, 0, AUDIT_ARCH_I386), SECCOMP_RET_KILL_PROCESS);
}

// As seccomp_is_const_allow() of the kernel: a call whose answer needs nothing but number and architecture, and is ALLOW, is in
// the filter's bitmap, and its program does not run at all (Linux 5.11).
bool in_bitmap(const Program& program, int nr) {
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    if (program[pc].code != (BPF_LD | BPF_W | BPF_ABS)) continue;
    if (program[pc].k == offsetof(seccomp_data, nr) || program[pc].k == offsetof(seccomp_data, arch)) continue;
    Program cut = program;  // would it come to this load?
    cut[pc] = BPF_STMT(BPF_RET | BPF_K, 0xdead);
    if (answer(cut, nr) == 0xdead) return false;
  }
  return answer(program, nr) == SECCOMP_RET_ALLOW;
}

// Recording costs allowed calls nothing: the same ones are in the bitmap, and those that are not meet as many instructions.
TEST(Seccomp, WhatACompilerCallsNeedsNoProgram) {
  const auto loaded = policy::load_directory(CAISSON_SOURCE_DIR "/policies");
  ASSERT_TRUE(loaded.problems.empty());
  const auto& sets = loaded.policies.at("bash")->sets;
  const Program answers = compile(sets);
  const auto tells = compile_seccomp(sets, Refusal::notify);
  ASSERT_TRUE(tells);
  ASSERT_EQ(tells->size(), answers.size());
  int cached = 0, allowed = 0;
  for (int nr = 0; nr < 470; ++nr) {
    EXPECT_EQ(in_bitmap(*tells, nr), in_bitmap(answers, nr)) << nr;
    cached += in_bitmap(*tells, nr);
    allowed += answer(*tells, nr) == SECCOMP_RET_ALLOW;
  }
  RecordProperty("cached", cached);
  EXPECT_GE(cached * 100, allowed * 90) << cached << " of " << allowed;
  for (const int nr : {SYS_read, SYS_write, SYS_openat, SYS_newfstatat, SYS_close, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_brk,
                       SYS_lseek, SYS_execve, SYS_wait4, SYS_exit_group, SYS_rt_sigaction, SYS_getcwd, SYS_faccessat2, SYS_futex})
    EXPECT_TRUE(in_bitmap(*tells, nr)) << nr;
}

// Observed are the calls that name files, where they are allowed as they are; nothing else is any different.
TEST(Seccomp, ObservedAreTheCallsThatNameFiles) {
  const auto loaded = policy::load_directory(CAISSON_SOURCE_DIR "/policies");
  ASSERT_TRUE(loaded.problems.empty());
  auto sets = loaded.policies.at("bash")->sets;
  sets.front().refuse.push_back("rename");
  const auto tells = compile_seccomp(sets, Refusal::notify), observes = compile_seccomp(sets, Refusal::observe);
  ASSERT_TRUE(tells && observes);
  const std::string refused = refusals(sets);
  for (int nr = 0; nr < 700; ++nr) {
    const std::uint32_t was = answer(*tells, nr), now = answer(*observes, nr);
    if (refused.contains("\n" + std::to_string(nr) + " ")) EXPECT_EQ(now, was) << nr;
    else EXPECT_EQ(now, observed_call(nr) != nullptr ? std::uint32_t{SECCOMP_RET_USER_NOTIF} : was) << nr;
  }
  EXPECT_TRUE(refused.contains("\n" + std::to_string(SYS_rename) + " ")) << "what is refused is never one of them";
}

// Cut by name, by opening without write access, opened for nothing; everything else of open(2) stays, the flags' garbage above 32
// bits included.
TEST(Seccomp, WhatLandlockDoesNotGovernIsRefused) {
  const auto loaded = policy::load_directory(CAISSON_SOURCE_DIR "/policies");
  ASSERT_TRUE(loaded.problems.empty());
  for (const bool cuts : {false, true}) {
    auto sets = loaded.policies.at("bash")->sets;
    sets.push_back(stands_in(cuts ? Ungoverned::truncation : Ungoverned::ioctl));
    const Program program = compile(sets);
    EXPECT_EQ(answer(program, SYS_truncate), cuts ? kEperm : SECCOMP_RET_ALLOW);
    EXPECT_EQ(answer(program, SYS_openat2), kEnosys);
    EXPECT_EQ(answer(program, SYS_ftruncate), SECCOMP_RET_ALLOW);
    for (const std::uint64_t above : {std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{1} << 63})
      for (std::uint64_t flags = 0; flags < 0x1000; ++flags) {
        const bool refused =
            (flags & O_ACCMODE) == O_ACCMODE || (cuts && (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY);
        seccomp_data data{.nr = SYS_openat, .arch = AUDIT_ARCH_X86_64};
        data.args[2] = above | flags;
        EXPECT_EQ(interpret(program, data), refused ? kEacces : SECCOMP_RET_ALLOW) << flags;
        EXPECT_EQ(answer(program, SYS_open, 0, above | flags), refused ? kEacces : SECCOMP_RET_ALLOW) << flags;
      }
  }
}

// Whoever allows less keeps it: nothing is allowed that the sets do not allow.
TEST(Seccomp, StandingInForLandlockWidensNothing) {
  SyscallSet few;
  few.name = "few";
  few.allow.push_back({"read", {}, {}, ""});
  few.allow.push_back({"openat", {{{2, "masked_eq", O_RDONLY, O_ACCMODE}}}, {}, ""});
  const Program less = compile({few}), refused = compile({few, stands_in(Ungoverned::truncation)});
  for (int nr = 0; nr < 700; ++nr)
    for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE, O_TRUNC, O_TRUNC | O_WRONLY, O_TRUNC | O_ACCMODE}) {
      seccomp_data data{.nr = nr, .arch = AUDIT_ARCH_X86_64};
      data.args[1] = data.args[2] = static_cast<unsigned>(flags);
      const bool was = interpret(less, data) == SECCOMP_RET_ALLOW, is = interpret(refused, data) == SECCOMP_RET_ALLOW;
      EXPECT_EQ(is, was && !(nr == SYS_openat && flags == O_TRUNC)) << nr << " " << flags;
    }
}

// Each call that can be told of has its line, and no other has.
TEST(Seccomp, RefusalsNameEveryRule) {
  SyscallSet set, other;
  set.name = "some";
  set.allow.push_back({"read", {}, {}, ""});
  set.allow.push_back({"socket", {{{0, "masked_eq", 1, 0xffffffff}}}, {}, ""});
  set.refuse = {"mount"};
  other.name = "refused";
  other.refuse = {"ptrace"};
  other.allow.push_back({"socket", {{{0, "masked_eq", 2, 0xffffffff}}}, {}, ""});
  EXPECT_EQ(refusals({set, other}), "\n" + std::to_string(SYS_socket) +
                                        " socket seccomp/some: any_of, seccomp/refused: any_of\n" + std::to_string(SYS_ptrace) +
                                        " ptrace seccomp/refused\n" + std::to_string(SYS_mount) +
                                        " mount seccomp/some: refused here\n");
}

TEST(Seccomp, GarbageInTheUpperHalfDoesNotHideAMaskedArgument) {
  const Program program = compile_rule({}, {{{1, "masked_eq", 0x5412, 0xffffffff}}});
  EXPECT_EQ(answer(program, SYS_ioctl, 0, 0x5412), kEperm);
  EXPECT_EQ(answer(program, SYS_ioctl, 0, 0x5412 | 1ULL << 32), kEperm);
  EXPECT_EQ(answer(program, SYS_ioctl, 0, 0x5413), SECCOMP_RET_ALLOW);
}

// Every operator at every boundary of both words.
TEST(Seccomp, OperatorsCompareSixtyFourBits) {
  const std::uint64_t edge[] = {0, 1, 0x7fffffff, 0xffffffff, 0x100000000, 0x100000001, 0x1ffffffff, 0x8000000000000000, ~0ULL};
  for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    for (const std::uint64_t value : edge) {
      const Program program = compile_rule({{{1, op, value, ~0ULL}}}, {});
      for (const std::uint64_t arg : edge) {
        const std::string o = op;
        const bool holds = o == "eq"   ? arg == value
                           : o == "ne" ? arg != value
                           : o == "lt" ? arg < value
                           : o == "le" ? arg <= value
                           : o == "gt" ? arg > value
                                       : arg >= value;
        EXPECT_EQ(answer(program, SYS_ioctl, 0, arg), holds ? SECCOMP_RET_ALLOW : kEperm) << arg << " " << op << " " << value;
      }
    }
  }
}

TEST(Seccomp, AllConditionsOfARowMustHoldAndAnyRowIsEnough) {
  const Program program = compile_rule({{{0, "eq", 1, ~0ULL}, {1, "eq", 2, ~0ULL}}, {{0, "eq", 7, ~0ULL}}}, {});
  EXPECT_EQ(answer(program, SYS_ioctl, 1, 2), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(program, SYS_ioctl, 1, 3), kEperm);
  EXPECT_EQ(answer(program, SYS_ioctl, 7, 3), SECCOMP_RET_ALLOW);
}

// The shipped policies: what no session may ever call.
TEST(Seccomp, ShippedPoliciesRefuseTheDangerousCalls) {
  const auto loaded = policy::load_directory(CAISSON_SOURCE_DIR "/policies");
  ASSERT_TRUE(loaded.problems.empty()) << loaded.problems.front().text();
  for (const auto& [name, p] : loaded.policies) {
    const Program program = compile(p->sets);
    for (const long nr : {SYS_mount,
                          SYS_umount2,
                          SYS_pivot_root,
                          SYS_unshare,
                          SYS_setns,
                          SYS_ptrace,
                          SYS_bpf,
                          SYS_keyctl,
                          SYS_add_key,
                          SYS_request_key,
                          SYS_userfaultfd,
                          SYS_io_uring_setup,
                          SYS_io_uring_enter,
                          SYS_perf_event_open,
                          SYS_open_by_handle_at,
                          SYS_init_module,
                          SYS_kexec_load,
                          SYS_process_vm_readv,
                          SYS_chroot,
                          SYS_fsopen,
                          SYS_move_mount,
                          SYS_open_tree,
                          SYS_mount_setattr,
                          SYS_fanotify_init,
                          SYS_memfd_secret,
                          SYS_modify_ldt,
                          SYS_acct,
                          SYS_swapon,
                          SYS_reboot,
                          SYS_quotactl,
                          SYS_syslog})
      if (nr != SYS_chroot || name != "browser") EXPECT_EQ(answer(program, nr), kEperm) << name << " " << nr;
    for (const std::uint64_t flag :
         {0x20000ULL, 0x2000000ULL, 0x4000000ULL, 0x8000000ULL, 0x10000000ULL, 0x20000000ULL, 0x40000000ULL})
      EXPECT_EQ(answer(program, SYS_clone, 17 | flag),
                name == "browser" && (flag == CLONE_NEWUSER || flag == CLONE_NEWPID) ? SECCOMP_RET_ALLOW : kEperm)
          << name << " clone " << flag;
    EXPECT_EQ(answer(program, SYS_clone, 17), SECCOMP_RET_ALLOW) << name;
    for (const std::uint64_t command :
         {0x5412UL, 0x541cUL, 0x890bUL, 0x890dUL, 0x8914UL, 0x8924UL, 0x8937UL, 0x8946UL, 0x89a0UL, 0x89ffUL})
      EXPECT_EQ(answer(program, SYS_ioctl, 0, command | 1ULL << 40), kEperm) << name << " ioctl " << command;
    for (const std::uint64_t command : {0x8912UL, 0x8913UL, 0x8915UL, 0x8921UL, 0x8927UL, 0x8933UL})  // questions
      EXPECT_EQ(answer(program, SYS_ioctl, 0, command), SECCOMP_RET_ALLOW) << name << " ioctl " << command;
    for (const auto& [level, option, expected] : {std::tuple(0UL, 64UL, kEperm),
                                                  {0UL, 97UL, kEperm},
                                                  {0UL, 129UL, kEperm},
                                                  {0UL, 0x48fUL, kEperm},
                                                  {41UL, 65UL, kEperm},
                                                  {0UL, 1UL, std::uint32_t{SECCOMP_RET_ALLOW}}}) {  // IP_TOS
      const seccomp_data data{.nr = SYS_setsockopt, .arch = AUDIT_ARCH_X86_64, .args = {3, level, option}};
      EXPECT_EQ(interpret(program, data), expected) << name << " option " << option;
    }
    for (const std::uint64_t family : {38UL, 40UL, 17UL, 15UL, 21UL, 30UL, 44UL})
      EXPECT_EQ(answer(program, SYS_socket, family, 1), kEperm) << name << " family " << family;
    EXPECT_EQ(answer(program, 4000), kEnosys) << name;
  }
}

}  // namespace
}  // namespace caisson::confine
