// The steps by which a session is built, in order, and the records that the child writes about each to its status pipe.
// A failed step is the last record: it names itself, its errno and, where a list is worked through, the entry.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "launcher/base/sys.h"
#include "launcher/confine/faults.h"
#include "launcher/policy/mechanisms.h"

namespace caisson::confine {

enum class Step : std::uint16_t {
  user_ns,
  net_ns,
  mount_ns,
  sources,
  root,
  binds,
  files,
  proc,
  devices,
  hide,
  pivot,
  landlock_rules,  // made once
  namespaces,
  pid,
  proc_mount,
  protect,  // where the policy protects names
  private_mounts,
  hostname,
  stdio,
  limits,
  fds,
  root_ns,      // with system_packages
  credentials,  // each session
  capabilities,
  no_new_privs,
  landlock,
  seccomp,
  listener,
  exec,
  done,
};
inline constexpr int kStepCount = static_cast<int>(Step::done) + 1;

struct StepRow {
  Step step;
  const char* name;
  Mechanism mechanism;  // the wall that it belongs to
};

inline constexpr StepRow kSteps[kStepCount] = {
    {Step::user_ns, "user_ns", Mechanism::user_ns},
    {Step::net_ns, "net_ns", Mechanism::net_ns},
    {Step::mount_ns, "mount_ns", Mechanism::mount_ns},
    {Step::sources, "open_grants", Mechanism::mount_ns},
    {Step::root, "root_tmpfs", Mechanism::mount_ns},
    {Step::binds, "attach_grants", Mechanism::mount_ns},
    {Step::files, "make_files", Mechanism::mount_ns},
    {Step::proc, "template_proc", Mechanism::proc},
    {Step::devices, "devices", Mechanism::mount_ns},
    {Step::hide, "hide_paths", Mechanism::mount_ns},
    {Step::pivot, "pivot_root", Mechanism::mount_ns},
    {Step::landlock_rules, "landlock_rules", Mechanism::landlock},
    {Step::namespaces, "namespaces", Mechanism::mount_ns},
    {Step::pid, "pid_ns", Mechanism::pid_ns},
    {Step::proc_mount, "proc", Mechanism::proc},
    {Step::protect, "protect_names", Mechanism::mount_ns},
    {Step::private_mounts, "private_mounts", Mechanism::mount_ns},
    {Step::hostname, "hostname", Mechanism::uts_ns},
    {Step::stdio, "stdio", Mechanism::fds},
    {Step::limits, "rlimits", Mechanism::rlimits},
    {Step::fds, "close_fds", Mechanism::fds},
    {Step::root_ns, "root_ns", Mechanism::user_ns},
    {Step::credentials, "uid", Mechanism::uid},
    {Step::capabilities, "capabilities", Mechanism::capabilities},
    {Step::no_new_privs, "no_new_privs", Mechanism::no_new_privs},
    {Step::landlock, "landlock", Mechanism::landlock},
    {Step::seccomp, "seccomp", Mechanism::seccomp},
    {Step::listener, "denial_listener", Mechanism::denial_audit},
    {Step::exec, "exec_init", Mechanism::fds},
    {Step::done, "done", Mechanism::fds},
};

inline constexpr std::uint16_t kNoEntry = 0xffff;

struct StepRecord {
  Step step;
  std::uint16_t entry;  // index into the list that the step works through, or kNoEntry
  std::int32_t error;   // 0: post-condition holds
  std::uint32_t us;     // since the record before
  std::int32_t value;   // step pid: the pid of the session's first process, as the launcher sees it
};

// The child's end. Async-signal-safe. Records are written together, by `flush` and with a failed one: each alone would wake the
// launcher, some ten microseconds, on the processor that the child's helper works on. Of a child that is killed the launcher
// learns by the end of the pipe, however many of its records came.
class StepWriter {
 public:
  explicit StepWriter(int fd) : fd_(fd), last_(now()) {}
  void move_to(int fd) { fd_ = fd; }
  void done(Step step, std::int32_t value = 0) {
    if (faults::fail(kSteps[static_cast<int>(step)].name)) failed(step, ENOSPC);
    put({step, kNoEntry, 0, lap(), value});
  }
  [[noreturn]] void failed(Step step, int error, std::uint16_t entry = kNoEntry) {
    put({step, entry, error != 0 ? error : EIO, lap(), 0});
    flush();
    ::_exit(1);
  }
  void flush() {
    const std::size_t size = count_ * sizeof(StepRecord);
    // Nobody reads any more: the launcher is gone, and with it the reason to go on.
    if (::write(fd_, records_, size) != static_cast<ssize_t>(size)) ::_exit(1);
    count_ = 0;
  }

 private:
  static std::int64_t now() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
  }
  std::uint32_t lap() {
    const std::int64_t before = last_;
    last_ = now();
    return static_cast<std::uint32_t>(last_ - before);
  }
  void put(const StepRecord& record) {
    if (count_ == std::size(records_)) flush();
    records_[count_++] = record;
  }
  int fd_;
  std::int64_t last_;
  std::size_t count_ = 0;
  StepRecord records_[kStepCount] = {};  // less than PIPE_BUF: written whole or not at all
};

}  // namespace caisson::confine
