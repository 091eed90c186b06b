// What a session's tree is put together with: new and cloned mounts, names below a root that is not yet the root.
// Async-signal-safe: no allocation, errors by errno. No name is ever resolved through a symbolic link.
#pragma once

#include <sys/mount.h>

#include <cstddef>
#include <cstdint>

#include "launcher/common/wire/build_plan.h"

namespace caisson::confine {

inline constexpr std::uint64_t kNoSuidNoDev = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// openat2(2) with O_CLOEXEC: descriptor or -1.
int open_resolved(int dir, const char* path, std::uint64_t flags, std::uint64_t resolve);
// A new filesystem as a detached mount, or -1. options: "key=value,flag", without escapes: ours only.
int new_mount(const char* type, const char* options, std::uint64_t attr);

// Clones granted sources. Most are siblings (/etc/…), so the last parent directory stays open.
class SourceCloner {
 public:
  // A detached clone with the bind's attributes, or -1. The source must be the inode that the launcher saw (ESTALE): its
  // descriptor belongs to another mount namespace, so the path is resolved again, and one swapped in between fails closed.
  int clone(const builder::Bind& bind);

 private:
  int parent_ = -1;
  char path_[4096] = "";
};

class Tree {
 public:
  explicit Tree(int root) : root_(root) {}

  // Each makes what is missing of `path` (absolute, below the root). Parents inside a read-only grant must exist already.
  bool directory(const char* path);
  bool file(const char* path, const char* content, std::size_t size);
  bool link(const char* path, const char* target);
  bool attach(int mount, const char* path, bool directory);
  bool hold(const char* path);  // the directory, mounted on itself with all that is mounted below it
  // Covers what exists at `path` with a clone of `masks`/`file` or `masks`/`directory`, read-only; true also when nothing is
  // there.
  bool cover(const char* path, int masks, const char* file, const char* directory);

 private:
  // The directory of `path`'s last name, which `name_` then points to; -1.
  int parent(const char* path);
  int make_parents(char* path);

  int root_;
  int parent_ = -1;  // descriptor of path_; valid because attaching at or above it goes through parent() of something else
  char path_[4096] = "";
  const char* name_ = nullptr;
};

}  // namespace caisson::confine
