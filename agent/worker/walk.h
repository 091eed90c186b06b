// Walking a directory tree: every directory is opened once, relative to the one that the walk began at, never through a
// symbolic link; bounded in entries and depth.
#pragma once

#include <functional>

#include "agent/worker/paths.h"

namespace caisson::worker {

struct Entry {
  std::string relative;  // "a/b"
  std::string name;
  std::size_t depth = 1;
  bool directory = false;  // of a link: what it leads to
  bool link = false;
};

enum class Step { descend, skip, stop };

// The most entries that are looked at: a tree made to be endless ends here.
inline constexpr std::size_t kMostEntries = 2'000'000;

// A directory below `top`, never through a symbolic link; "" is `top` itself. -1 with errno.
[[nodiscard]] int open_below(const Fd& top, const std::string& relative);
// lstat(2) of a name below `top`, no directory of which is a symbolic link. False with errno.
[[nodiscard]] bool stat_below(const Fd& top, const std::string& relative, struct stat& st);

// `directory` is the one that the entry's name is in, as it was opened: whatever the path leads to by now.
using Visit = std::function<Step(const Entry&, int directory)>;
// Calls visit for each entry below `top`; links are not descended into. `complete` becomes false when a bound was met. What
// cannot be read below the top is left out, as `find` does (without its complaints).
[[nodiscard]] Done<void> walk(const Fd& top, const std::string& path, const Request& request, const Visit& visit, bool& complete);

struct Facts {
  std::int64_t size = 0, modified_ns = 0;
  unsigned mode = 0;
};
// Of what the entry leads to; of the link itself when that is nothing.
[[nodiscard]] Facts facts_of(int directory, const Entry& entry);

}  // namespace caisson::worker
