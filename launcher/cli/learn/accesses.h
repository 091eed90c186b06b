// What a traced command did, as `caisson policy learn` keeps it: one entry a path, and what it used besides.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace caisson::cli::learn {

enum Use : unsigned {
  kLooked = 1,     // stat, access, readlink: that it is there
  kRead = 2,       // opened for reading
  kListed = 4,     // a directory whose entries were read
  kWritten = 8,    // opened for writing, or its metadata changed
  kExecuted = 16,  // executed, or mapped executable (shared libraries)
  kEntries = 32,   // a directory in which entries were made, renamed or removed
};

struct Path {
  unsigned done = 0;     // Use, of calls that succeeded
  unsigned refused = 0;  // Use, of calls that failed with EACCES, EPERM or EROFS
  unsigned missing = 0;  // Use, of calls that failed with ENOENT or ENOTDIR
  bool directory = false;
};

struct Peaks {
  std::uint64_t processes = 0;  // and threads, at one time
  std::uint64_t memory_bytes = 0;
  std::uint64_t open_files = 0;       // highest descriptor and one
  std::uint64_t file_size_bytes = 0;  // of a file that was closed after writing
  std::uint64_t cpu_seconds = 0;      // of one process
};

struct Accesses {
  std::map<std::string, Path> paths;                   // canonical, as the session sees them
  std::set<std::uint64_t> used_calls;                  // numbers of all system calls that returned; empty: not the whole run
  std::map<std::string, std::uint64_t> refused_calls;  // system call -> times that it answered EPERM or ENOSYS
  std::set<std::string> outside;                       // addresses beyond loopback that a connect named
  bool inet = false;                                   // a socket of AF_INET or AF_INET6 was made
  Peaks peaks;
  std::uint64_t calls = 0, processes = 0;  // how much was seen
  std::uint64_t dropped = 0;               // paths beyond kMaxPaths
};
inline constexpr std::size_t kMaxPaths = 200'000;

}  // namespace caisson::cli::learn
