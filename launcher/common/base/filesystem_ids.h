// Another user's ids for what this thread does to files, while it lives: setfsuid(2) and setfsgid(2), which need CAP_SETUID and
// CAP_SETGID. What is made belongs to that user, without CAP_CHOWN, and what it may not reach is out of reach.
#pragma once

#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

namespace caisson {

class FilesystemIds {
 public:
  FilesystemIds(uid_t uid, gid_t gid) {
    ::setfsgid(gid);
    ::setfsuid(uid);
  }
  // The kernel takes the dumpable flag away with each change: an undumpable parent could write no id map of its children.
  ~FilesystemIds() {
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
    (void)::prctl(PR_SET_DUMPABLE, dumpable_);
  }
  FilesystemIds(const FilesystemIds&) = delete;
  FilesystemIds& operator=(const FilesystemIds&) = delete;

 private:
  const int dumpable_ = ::prctl(PR_GET_DUMPABLE);
};

}  // namespace caisson
