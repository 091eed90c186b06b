// What a listener is asked (seccomp_unotify(2)), and what Debian 12's headers (6.1) lack of it.
#pragma once

#include <linux/seccomp.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace caisson::auditor {

// Linux 6.6: the caller and we run one after the other, so the kernel wakes either on the same processor.
inline constexpr unsigned long kSetFlags = SECCOMP_IOW(4, std::uint64_t);
inline constexpr std::uint64_t kSyncWakeUp = 1;

// Of those that only look.
inline constexpr unsigned long kRequests[] = {SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_IOCTL_NOTIF_ID_VALID,
                                              kSetFlags};

// A call that another process was told of (caisson-connector): the auditor gets the notification as a message, and answers so.
struct Answered {
  std::uint64_t call;  // it is refused with EPERM
};

inline void prefer_sync_wake_up(int listener) { (void)::ioctl(listener, kSetFlags, kSyncWakeUp); }
[[nodiscard]] inline bool receive(int listener, seccomp_notif& call) {
  call = {};  // the kernel demands it
  return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0;
}
// The call fails with `error`, whatever it was; it is never let through. An error means that its process is gone.
inline void refuse(int listener, std::uint64_t id, int error) {
  seccomp_notif_resp answer{id, 0, -error, 0};
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
// The call goes on as if nobody had been told. For calls that the filter allows and that are only looked at, never for one that
// it refuses: what lies behind the registers can change until the kernel looks, so nothing may depend on what was seen
// (seccomp_unotify(2)). Whether it succeeds is up to the mount tree, Landlock and file modes.
inline void go_on(int listener, std::uint64_t id) {
  seccomp_notif_resp answer{id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
// The call succeeds with this value, and is not carried out.
inline void succeed(int listener, std::uint64_t id, std::int64_t value) {
  seccomp_notif_resp answer{id, value, 0, 0};
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
// The call succeeds with a new descriptor of the caller's, a copy of `fd`. False with errno: it still waits, or is gone.
[[nodiscard]] inline bool give(int listener, std::uint64_t id, int fd, std::uint32_t flags) {
  seccomp_notif_addfd gift{
      .id = id, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = static_cast<std::uint32_t>(fd), .newfd = 0, .newfd_flags = flags};
  return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &gift) >= 0;
}
// Whether the caller still waits: what was read by its pid in between was then not of another process.
[[nodiscard]] inline bool waits(int listener, std::uint64_t id) {
  return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

}  // namespace caisson::auditor
