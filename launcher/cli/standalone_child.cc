// Starting a session that shares nothing with others, without a builder: what `caisson run` does.
#include "launcher/cli/standalone_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/build/child.h"
#include "launcher/common/confine/build_rows.h"
#include "launcher/common/confine/fork_refusal.h"
#include "launcher/common/confine/user_ns.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/probing/probe_features.h"

namespace caisson::confine {

Features optimistic_features() {
  Features f;
  ask_cheaply(f);
  for (Tried* t :
       {&f.seccomp, &f.user_ns, &f.mount_ns, &f.net_ns, &f.ipc_ns, &f.uts_ns, &f.cgroup_ns, &f.proc_full, &f.change_uid})
    *t = {0, ""};
  return f;
}

Result<Standalone> start_standalone(const Plan& plan, const Program& filter, const Protection& protection,
                                    const std::string& init, const std::string& root_dir, uid_t uid, gid_t gid) {
  TRY_ASSIGN(const Fd init_exe, sys::open(init, O_PATH));
  TRY_ASSIGN(const Fd null, sys::open("/dev/null", O_RDWR));
  TRY_ASSIGN(auto status, sys::pipe());
  TRY_ASSIGN(auto socket, sys::seqpacket_pair());
  const BuildRows rows(plan, filter);
  const ChildArgs args{.plan = &rows.plan,
                       .stage_dir = root_dir.c_str(),
                       .answer = socket.second.get(),
                       .peer = socket.first.get(),
                       .status = status.second.get(),
                       .init_exe = init_exe.get(),
                       .null = null.get(),
                       .protect = protection.program.get(),
                       .notes = protection.notes.get(),
                       .uid = uid,
                       .gid = gid};
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1, single_namespaces(rows.plan));
  if (pid < 0) return sys_error("clone into new namespaces" + fork_refusal(errno));
  if (pid == 0) single_child(args);
  Standalone started{std::move(status.first), Fd(pidfd), pid, std::move(socket.first)};
  start_elsewhere(pid);
  if (!plan.user_ns) return started;
  Status told = write_id_maps(pid, uid, gid);
  if (told && ::send(started.socket.get(), "y", 1, MSG_NOSIGNAL) != 1) told = sys_error("write to the session's child");
  if (told) return started;
  (void)sys::pidfd_send_signal(pidfd, SIGKILL);  // a child that waits for maps must not outlive a failure
  sys::reap(pid);
  return std::unexpected(std::move(told).error());
}

}  // namespace caisson::confine
