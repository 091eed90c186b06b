#include "launcher/common/probing/probe_features.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/build/load_filter.h"
#include "launcher/common/build/net.h"
#include "launcher/common/capture/capture.h"
#include "launcher/common/confine/seccomp.h"
#include "launcher/common/confine/user_ns.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"
#include "launcher/common/probing/probe_connect.h"
#include "launcher/common/probing/probe_report.h"

namespace caisson::confine {
namespace {

// What a probe child sends back: errno and the step's name (a string literal, so the pointer is valid in the parent).
struct Outcome {
  int error;
  const char* step;
};

using Probe = Outcome (*)();
constexpr Outcome kFine{0, ""};
constexpr uid_t kProbeUid = 20001;
constexpr std::size_t kMaxProcFile = 64 * 1024;

Outcome outcome(bool ok, const char* step) { return ok ? kFine : Outcome{errno, step}; }

uid_t probe_uid() { return ::geteuid() == 0 ? kProbeUid : ::geteuid(); }

// Runs `probe` in a child, in a fresh mapped user namespace when asked.
Tried try_in_child(Probe probe, bool in_user_ns) {
  auto down = sys::pipe(), up = sys::pipe();
  if (!down || !up) return {EMFILE, "pipe"};
  const pid_t pid = raw::fork_with(0);
  if (pid < 0) return {errno, "fork"};
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    down->second.reset();  // else our own copy would keep us waiting when the parent has given up
    Outcome out = kFine;
    if (in_user_ns) {
      out = outcome(::unshare(CLONE_NEWUSER) == 0, "unshare(NEWUSER)");
      if (out.error == 0) {
        const Outcome ask{-1, ""};
        char go = 0;
        if (::write(up->second.get(), &ask, sizeof ask) != static_cast<ssize_t>(sizeof ask)) ::_exit(1);
        if (::read(down->first.get(), &go, 1) != 1 || go != 'y') ::_exit(1);
      }
    }
    if (out.error == 0) out = probe();
    ::_exit(::write(up->second.get(), &out, sizeof out) == static_cast<ssize_t>(sizeof out) ? 0 : 1);
  }
  up->second.reset();
  down->first.reset();
  Tried tried{EIO, "probe child"};
  Outcome out{};
  while (::read(up->first.get(), &out, sizeof out) == static_cast<ssize_t>(sizeof out)) {
    if (out.error >= 0) {
      tried = {out.error, out.step};
      break;
    }
    const Status maps = write_id_maps(pid, probe_uid(), ::geteuid() == 0 ? kProbeUid : ::getegid());
    if (!maps) {
      tried = {maps.error().sys != 0 ? maps.error().sys : EIO, "uid_map"};
      break;
    }
    if (::write(down->second.get(), "y", 1) != 1) break;
  }
  down->second.reset();  // a child that still waits ends
  sys::reap(pid);
  return tried;
}

Outcome probe_nothing() { return kFine; }

Outcome probe_mounts() {
  if (::unshare(CLONE_NEWNS) != 0) return outcome(false, "unshare(NEWNS)");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return outcome(false, "mount private");
  const int usr = ::open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | AT_RECURSIVE | O_CLOEXEC);
  if (usr < 0) return outcome(false, "open_tree");
  mount_attr attr{.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
  if (::mount_setattr(usr, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) != 0) return outcome(false, "mount_setattr");
  if (!become_inner()) return outcome(false, "setresuid inside");
  const int fs = ::fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || ::fsconfig(fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return outcome(false, "fsopen tmpfs");
  const int root = ::fsmount(fs, FSMOUNT_CLOEXEC, 0);
  if (root < 0) return outcome(false, "fsmount");
  if (::move_mount(root, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH) != 0) return outcome(false, "move_mount");
  if (::mkdirat(root, "usr", 0755) != 0) return outcome(false, "mkdir in tmpfs");
  if (::move_mount(usr, "", root, "usr", MOVE_MOUNT_F_EMPTY_PATH) != 0) return outcome(false, "move_mount usr");
  if (::fchdir(root) != 0 || raw::pivot_root(".", ".") != 0) return outcome(false, "pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return outcome(false, "umount2");
  return kFine;
}

Outcome probe_net() { return outcome(::unshare(CLONE_NEWNET) == 0, "unshare(NEWNET)"); }
// The words of capture::Step, each with an end.
constexpr auto kSteps = [] {
  std::array<std::array<char, 16>, static_cast<std::size_t>(capture::Step::proof) + 1> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::string_view name = word(words(capture::Step{}), i);
    std::ranges::copy(name, out[i].begin());
  }
  return out;
}();

// What caisson-gate makes for a workspace, and that it works.
template <class Open>
Outcome probe_egress(Open open) {
  if (::unshare(CLONE_NEWNET) != 0) return outcome(false, "unshare(NEWNET)");
  if (const int error = loopback_up(); error != 0) return {error, "loopback"};
  capture::Step step{};
  const auto made = open(step);
  if (made) return kFine;
  return {made.error().sys != 0 ? made.error().sys : EIO, kSteps[static_cast<std::size_t>(step)].data()};
}
Outcome probe_egress_tproxy() {
  return probe_egress([](capture::Step& step) { return capture::open(step); });
}
Outcome probe_egress_ports() {
  static constexpr std::uint16_t kHttp[] = {80};
  return probe_egress([](capture::Step& step) { return capture::open_ports(step, kHttp); });
}
Outcome probe_egress_connect() {
  const auto [error, step] = probe_connect(kProbeUid);
  return {error, step};
}
Outcome probe_ipc() { return outcome(::unshare(CLONE_NEWIPC) == 0, "unshare(NEWIPC)"); }
// podman's own seccomp profile permits the namespace and refuses to name the host in it: then the container's name stays.
Outcome probe_uts() {
  if (::unshare(CLONE_NEWUTS) != 0) return outcome(false, "unshare(NEWUTS)");
  return outcome(::sethostname("probe", 5) == 0, "sethostname");
}
Outcome probe_cgroup_ns() { return outcome(::unshare(CLONE_NEWCGROUP) == 0, "unshare(NEWCGROUP)"); }

Outcome probe_proc(bool subset) {
  if (::unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return outcome(false, "unshare(NEWPID)");
  int result[2];
  if (::pipe2(result, O_CLOEXEC) != 0) return outcome(false, "pipe");
  const pid_t pid = raw::fork_with(0);
  if (pid < 0) return outcome(false, "fork");
  Outcome out{EIO, "proc child"};
  if (pid == 0) {
    const int fs = ::fsopen("proc", FSOPEN_CLOEXEC);
    if (fs < 0) {
      out = outcome(false, "fsopen proc");
    } else if (subset && ::fsconfig(fs, FSCONFIG_SET_STRING, "subset", "pid", 0) != 0) {
      out = outcome(false, "subset=pid");
    } else if (::fsconfig(fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
      out = outcome(false, "create procfs");
    } else {
      out =
          outcome(::fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC) >= 0, "fsmount proc");
    }
    ::_exit(::write(result[1], &out, sizeof out) == static_cast<ssize_t>(sizeof out) ? 0 : 1);
  }
  ::close(result[1]);
  if (::read(result[0], &out, sizeof out) != static_cast<ssize_t>(sizeof out)) out = {EIO, "proc child"};
  sys::reap(pid);
  return out;
}
Outcome probe_proc_full() { return probe_proc(false); }
Outcome probe_proc_subset() { return probe_proc(true); }

Outcome probe_change_uid() {
  const uid_t other = kProbeUid + (::geteuid() == kProbeUid ? 1 : 0);  // becoming oneself proves nothing
  return outcome(::setresgid(other, other, other) == 0 && ::setresuid(other, other, other) == 0, "setresuid");
}

Outcome probe_seccomp() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return outcome(false, "no_new_privs");
  // A null program is EFAULT where filters exist and EINVAL where they do not.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, nullptr) != 0 && errno == EFAULT) return kFine;
  return {errno == 0 ? ENOSYS : errno, "seccomp(2)"};
}

// EBUSY where the container itself runs under a filter with a listener, EINVAL before Linux 5.19.
Outcome probe_notify() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return outcome(false, "no_new_privs");
  int listener = -1;
  const sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return outcome(load_seccomp(allow, 1, &listener) == 0, "seccomp(2) with a listener");
}

std::string proc_text(const char* path) {
  std::string text = sys::read_file(path, kMaxProcFile).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

// "0 100000 65536" for each line of a map.
nlohmann::json id_map(const char* path) {
  nlohmann::json out = nlohmann::json::array();
  std::istringstream lines(proc_text(path));
  for (unsigned inside, outside, count; out.size() < 32 && lines >> inside >> outside >> count;)
    out.push_back({{"inside", inside}, {"outside", outside}, {"count", count}});
  return out;
}

// Every claim of statements about what the launcher runs in, which is what we run in (statement.schema.json).
std::string outside_facts(const Features& f, const std::string& status) {
  utsname name{};
  (void)::uname(&name);
  nlohmann::json lsm = nlohmann::json::array();
  std::istringstream list(proc_text("/sys/kernel/security/lsm"));
  for (std::string one; std::getline(list, one, ',');) lsm.push_back(one);
  const nlohmann::json out{
      {"kernel", {{"release", f.kernel}, {"machine", name.machine}, {"landlock_abi", f.landlock_abi}, {"lsm", lsm}}},
      {"outer",
       {{"uid_map", id_map("/proc/self/uid_map")},
        {"gid_map", id_map("/proc/self/gid_map")},
        {"uid_remapped", f.uid_remapped},
        {"capabilities", {{"effective", f.capabilities}, {"bounding", sys::status_field(status, "CapBnd")}}},
        {"no_new_privs", f.no_new_privs},
        {"seccomp", {{"mode", f.outer_seccomp}, {"filters", sys::status_field(status, "Seccomp_filters")}}},
        {"lsm_label", f.lsm_label},
        {"proc_sys_writable", f.proc_sys_writable}}}};
  return json::dump(out);
}

}  // namespace

void ask_cheaply(Features& f) {
  utsname name{};
  if (::uname(&name) == 0) f.kernel = name.release;
  const int abi = raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  f.landlock_abi = abi < 0 ? 0 : abi;
  ask_cgroup(f);
}

Features probe_features() {
  Features f;
  ask_cheaply(f);
  f.seccomp = try_in_child(probe_seccomp, false);
  f.notify = try_in_child(probe_notify, false);
  f.change_uid = try_in_child(probe_change_uid, false);
  f.egress_connect = try_in_child(probe_egress_connect, false);
  f.user_ns = try_in_child(probe_nothing, true);
  if (f.user_ns.ok()) {
    f.mount_ns = try_in_child(probe_mounts, true);
    f.net_ns = try_in_child(probe_net, true);
    f.egress_tproxy = try_in_child(probe_egress_tproxy, true);
    f.egress_ports = f.egress_tproxy.ok() ? f.egress_tproxy : try_in_child(probe_egress_ports, true);
    f.ipc_ns = try_in_child(probe_ipc, true);
    f.uts_ns = try_in_child(probe_uts, true);
    f.cgroup_ns = try_in_child(probe_cgroup_ns, true);
    f.proc_full = try_in_child(probe_proc_full, true);
    f.proc_subset = try_in_child(probe_proc_subset, true);
  }
  const std::string status = sys::read_file("/proc/self/status", 16384).value_or("");
  f.no_new_privs = sys::status_field(status, "NoNewPrivs") == "1";
  f.outer_seccomp = std::atoi(sys::status_field(status, "Seccomp").c_str());
  f.capabilities = sys::status_field(status, "CapEff");
  const std::string map = sys::read_file("/proc/self/uid_map", 4096).value_or("");
  unsigned inside = 0, outside = 0;
  f.uid_remapped = std::sscanf(map.c_str(), "%u %u", &inside, &outside) == 2 && outside != 0;
  // Asks for permission only; nothing is written.
  f.proc_sys_writable = ::geteuid() == 0 && sys::open("/proc/sys/kernel/core_pattern", O_WRONLY).has_value();
  f.lsm_label = proc_text("/proc/self/attr/current");
  f.outside = outside_facts(f, status);
  f.report = json::dump(report_of(f));
  f.missing = missing_walls(f);
  return f;
}

}  // namespace caisson::confine
