// Walks a directory tree. Every directory is opened once, relative to the top of the walk and never through a symbolic link.
// Entries and depth are bounded.
#pragma once

#include <functional>

#include "agent/worker/paths.h"

namespace caisson::worker {

struct Entry {
  std::string relative;  // "a/b"
  std::string name;
  std::size_t depth = 1;
  bool directory = false;  // of a link: its target
  bool link = false;
};

enum class Next { descend, skip, stop };

// The most entries of a walk, so that a tree made to be endless ends.
inline constexpr std::size_t kMostEntries = 2'000'000;

// Opens a directory below `top`, never through a symbolic link; "" is `top` itself. -1 with errno set.
[[nodiscard]] int open_below(const Fd& top, const std::string& relative);
// lstat(2) of a name below `top`; no directory on the way may be a symbolic link. False with errno set.
[[nodiscard]] bool stat_below(const Fd& top, const std::string& relative, struct stat& st);

// `directory` is the open directory that holds the entry, even if the path leads elsewhere by now.
using Visit = std::function<Next(const Entry&, int directory)>;
// Calls visit for each entry below `top` and does not follow links. `complete` becomes false when a bound is reached. Unreadable
// directories below the top are left out silently.
[[nodiscard]] Done<void> walk(const Fd& top, const std::string& path, const Request& request, const Visit& visit, bool& complete);

struct Facts {
  std::int64_t size = 0, modified_ns = 0;
  unsigned mode = 0;
};
// Status of the entry's target, or of the link itself if it has no target.
[[nodiscard]] Facts facts_of(int directory, const Entry& entry);

}  // namespace caisson::worker
