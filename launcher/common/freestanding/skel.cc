#include "launcher/common/freestanding/skel.h"

namespace caisson::init {
namespace {

namespace k = kernel;

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// Not counted: what a new filesystem has, and the launcher's own .tmp where the home lies in memory.
bool counts(const char* name) {
  return !same(name, ".") && !same(name, "..") && !same(name, ".tmp") && !same(name, "lost+found");
}

// Calls `each` for the names of a directory until it answers false.
template <class Each>
void names(int directory, Each each) {
  alignas(dirent64) char entries[4096];
  for (long size; (size = k::getdents(directory, entries, sizeof entries)) > 0;)
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (counts(entry->d_name) && !each(entry->d_name)) return;
      at += entry->d_reclen;
    }
}

bool copy(int in, int out) {
  char buffer[4096];
  for (long left = kSkelBytes, n; left > 0; left -= n) {
    n = k::read(in, buffer, sizeof buffer);
    if (n <= 0) return n == 0;
    if (k::write(out, buffer, static_cast<std::size_t>(n)) != n) return false;
  }
  return false;
}

void place(int from, int home, const char* name, mode_t shared) {
  struct stat st;
  const auto in = static_cast<int>(k::openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
  if (in < 0) return;
  if (k::fstat(in, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < kSkelBytes) {
    const mode_t mode = (st.st_mode & 0755) | shared;
    const auto out = static_cast<int>(k::openat(home, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (out >= 0) {
      if (shared != 0) k::fchmod(out, mode);
      if (!copy(in, out)) k::unlinkat(home, name);  // a full disk: half a .bashrc is worse than none
      k::close(out);
    }
  }
  k::close(in);
}

}  // namespace

void fill_home(const char* path) {
  const auto home = static_cast<int>(k::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (home < 0) return;
  bool empty = true;
  names(home, [&empty](const char*) { return empty = false; });
  struct stat st;
  if (empty && k::fstat(home, &st) == 0) {
    // Sessions of T0 share a home by its group, each with a uid of its own.
    const mode_t shared = (st.st_mode & S_IWGRP) != 0 ? 0060 : 0;
    const auto from = static_cast<int>(k::open("/etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int files = 0;
    if (from >= 0) {
      names(from, [&](const char* name) {
        place(from, home, name, shared);
        return ++files < kSkelFiles;
      });
      k::close(from);
    }
  }
  k::close(home);
}

}  // namespace caisson::init
