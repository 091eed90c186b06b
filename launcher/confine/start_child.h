// Starting builder and session children: what session_builder.cc and standalone.cc have in common.
#pragma once

#include <signal.h>

#include "launcher/base/sys.h"
#include "launcher/confine/session_builder.h"

namespace caisson::confine {

using ChildMain = void (*)(const ChildArgs&);

// A builder's child. Its destructor kills it and, unless an event loop reaps children (`loop`), reaps it.
class Child {
 public:
  Child(pid_t pid, Fd pidfd, bool loop = false) : pid_(pid), pidfd_(std::move(pidfd)), loop_(loop) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
    if (!loop_) sys::reap(pid_);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  Fd release() {
    pid_ = 0;
    return std::move(pidfd_);
  }

 private:
  pid_t pid_;
  Fd pidfd_;
  const bool loop_;
};

[[nodiscard]] Status answer_maps(pid_t pid, uid_t uid, gid_t gid, const Fd& go);
[[nodiscard]] Result<Started> fork_session(ChildMain main, ChildArgs args, int cgroup_fd, unsigned long namespaces = 0,
                                           Fd* go_write = nullptr);

}  // namespace caisson::confine
