# AppArmor profile "caisson" for the outer container, for hosts that have AppArmor. Docker's and Podman's own profiles refuse
# every mount, also inside a user namespace, so that the launcher could not build a session's mount tree (tier T0 remains).
#   apparmor_parser -r image/apparmor.profile      then      --security-opt apparmor=caisson
# Without CAP_SYS_ADMIN a mount is possible only in a user namespace that the caller owns: the rules below add no power
# over the host. abi/3.0 on purpose: it is known to AppArmor 3 and 4, and under it user namespaces need no rule of their own.
abi <abi/3.0>,
include <tunables/global>

profile caisson flags=(attach_disconnected,mediate_deleted) {
  include <abstractions/base>

  file,
  network,
  # A kernel crypto socket has been a way out of containers before; nothing here needs one.
  deny network alg,
  capability,

  # What a session is built with.
  mount,
  remount,
  umount,
  pivot_root,

  # The engine may stop the container; inside, only its own processes may be signalled or traced.
  signal (receive) peer=unconfined,
  signal (receive) peer=runc,
  signal (receive) peer=crun,
  signal (receive) peer=podman,
  signal (send, receive) peer=caisson,
  ptrace (trace, read, tracedby, readby) peer=caisson,

  # The kernel's switches stay out of reach whatever the masks of the container are. Processes' own files
  # (/proc/PID/...) and a user namespace's own limits (/proc/sys/user) are what remains writable.
  deny @{PROC}/* w,
  deny @{PROC}/{[^1-9],[^1-9][^0-9],[^1-9s][^0-9y][^0-9s],[^1-9][^0-9][^0-9][^0-9/]*}/** w,
  deny @{PROC}/sys/[^ku]** w,
  deny @{PROC}/sys/u[^s]** w,
  deny @{PROC}/sys/kernel/{?,??,[^s][^h][^m]**} w,
  deny @{PROC}/sysrq-trigger rwklx,
  deny @{PROC}/kcore rwklx,

  # Of sysfs only the cgroup tree is writable.
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/devices/virtual/powercap/** rwklx,
  deny /sys/kernel/security/** rwklx,
}
