#include "launcher/cli/learn/calls.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "launcher/common/tables/path_calls.h"

namespace caisson::cli::learn {
namespace {

unsigned use_of(const PathCall& call, Want want) {
  switch (want) {
    case Want::look:
      return call.second != Want::nothing ? kRead : kLooked;  // a link's file is held by one more name
    case Want::access:
      return kLooked;
    case Want::execute:
      return kExecuted | kRead;
    case Want::create:
      return call.name == "creat" ? kWritten | kEntries : kEntries;
    case Want::remove:
      return kEntries;
    case Want::change:
      return kWritten;
    case Want::nothing:
    case Want::open:  // by its flags
    case Want::connect:
      return 0;
  }
  return 0;
}

std::vector<NamedPath> all_named_paths() {
  std::vector<NamedPath> out;
  for (const PathCall& call : kPathCalls) {
    if (call.nr == SYS_connect || call.nr == SYS_bind) continue;
    const auto number = static_cast<std::uint64_t>(call.nr);
    const Kind kind = call.nr == SYS_openat2 ? Kind::open_how : call.want == Want::open ? Kind::open : Kind::path;
    out.push_back({number, call.dir, call.path, use_of(call, call.want), call.follow, kind, kind == Kind::path ? 0 : call.flags});
    if (call.second != Want::nothing)
      out.push_back({number, call.second_dir, call.second_path, use_of(call, call.second), false});
  }
  return out;
}

}  // namespace

std::span<const NamedPath> named_paths() {
  static const std::vector<NamedPath> kPaths = all_named_paths();
  return kPaths;
}

unsigned use_of_open(std::uint64_t flags) {
  unsigned use = 0;
  if ((flags & O_PATH) != 0) return kLooked;
  if ((flags & O_ACCMODE) != O_WRONLY) use |= kRead;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0) use |= kWritten;
  // With O_CREAT the file may have been there: whether an entry was made shows when it is missing in another run.
  if ((flags & (O_CREAT | O_TMPFILE)) != 0 && (flags & O_DIRECTORY) == 0) use |= kEntries;
  if ((flags & O_TMPFILE) == O_TMPFILE) use |= kEntries;
  return use;
}

std::string call_name(std::uint64_t number) {
  char* const name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
  std::string out = name != nullptr ? name : std::to_string(number);
  ::free(name);
  return out;
}

}  // namespace caisson::cli::learn
