// The steps by which a session is built, in the order in which they are done, and the records that the child sends about each. A
// failed step is the last record: it names itself, its errno and, where a list is worked through, the entry.
#pragma once

#include <cstddef>
#include <cstdint>

#include "launcher/common/policy/mechanisms.h"
#include "launcher/common/wire/init_protocol.h"

namespace caisson::confine {

enum class Step : std::uint16_t {
  // a workspace's
  user_ns,
  net_ns,
  mount_ns,
  // a template's
  sources,
  root,
  files,
  binds,
  private_mounts,  // where home or /tmp is the session's own
  proc,
  hide,
  pivot,
  landlock_rules,
  // a session's
  pid,
  namespaces,
  proc_mount,
  devices,
  protect,  // where the policy protects names
  hostname,
  fds,
  limits,
  stdio,
  root_ns,  // with system_packages
  credentials,
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
    {Step::files, "make_files", Mechanism::mount_ns},
    {Step::binds, "attach_grants", Mechanism::mount_ns},
    {Step::private_mounts, "private_mounts", Mechanism::mount_ns},
    {Step::proc, "template_proc", Mechanism::proc},
    {Step::hide, "hide_paths", Mechanism::mount_ns},
    {Step::pivot, "pivot_root", Mechanism::mount_ns},
    {Step::landlock_rules, "landlock_rules", Mechanism::landlock},
    {Step::pid, "pid_ns", Mechanism::pid_ns},
    {Step::namespaces, "namespaces", Mechanism::mount_ns},
    {Step::proc_mount, "proc", Mechanism::proc},
    {Step::devices, "devices", Mechanism::mount_ns},
    {Step::protect, "protect_names", Mechanism::mount_ns},
    {Step::hostname, "hostname", Mechanism::uts_ns},
    {Step::fds, "close_fds", Mechanism::fds},
    {Step::limits, "rlimits", Mechanism::rlimits},
    {Step::stdio, "stdio", Mechanism::fds},
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
  std::int32_t value;   // step limits: tasks of others with this uid; step user_ns: -1, it waits for its id maps
};

// A message of records (init::Type::steps): as many as its size says.
struct Steps {
  init::Type type = init::Type::steps;
  StepRecord records[kStepCount] = {};
  static constexpr std::size_t size(std::size_t count) { return offsetof(Steps, records) + count * sizeof(StepRecord); }
};

}  // namespace caisson::confine
