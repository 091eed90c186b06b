// The system calls that name paths: where the names are, and what the call does with them.
#pragma once

#include <cstdint>
#include <span>

#include "launcher/cli/learn/accesses.h"

namespace caisson::cli::learn {

inline constexpr int kCwd = -1;  // the row's directory argument: none, relative to the working directory

enum class Kind {
  path,      // `use` of the path
  open,      // by the flags in argument `flags`
  open_how,  // by struct open_how at argument `flags`
};

// One path of a call (common/tables/path_calls.h).
struct NamedPath {
  std::uint64_t number;
  int dir;   // argument with the directory descriptor, or kCwd
  int path;  // argument with the name
  unsigned use;
  bool follow;  // the last component, where it is a symbolic link
  Kind kind = Kind::path;
  int flags = 0;
};

// A call with two names has two rows, in their order. Not connect and bind, whose address need not be a path.
[[nodiscard]] std::span<const NamedPath> named_paths();
[[nodiscard]] unsigned use_of_open(std::uint64_t flags);

[[nodiscard]] std::string call_name(std::uint64_t number);  // of a system call, or the number

}  // namespace caisson::cli::learn
