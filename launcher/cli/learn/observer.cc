#include "launcher/cli/learn/observer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "launcher/cli/learn/calls.h"
#include "launcher/common/base/sys.h"

namespace caisson::cli::learn {
namespace {

std::string proc(pid_t tid, const std::string& name) { return "/proc/" + std::to_string(tid) + "/" + name; }

std::optional<std::string> link_target(const std::string& path) {
  char buffer[PATH_MAX];
  const ssize_t n = ::readlink(path.c_str(), buffer, sizeof buffer);
  if (n <= 0 || n == static_cast<ssize_t>(sizeof buffer)) return std::nullopt;
  return std::string(buffer, static_cast<std::size_t>(n));
}

// What lies in the filesystem: pipes, sockets and deleted files do not.
std::optional<std::string> descriptor_path(pid_t tid, std::uint64_t fd) {
  auto path = link_target(proc(tid, "fd/" + std::to_string(static_cast<int>(fd))));
  if (!path || path->empty() || path->front() != '/' || path->ends_with(" (deleted)")) return std::nullopt;
  return path;
}

struct Found {
  std::string path;
  bool directory = false;
};

// The object that `path` leads to inside the thread's root, with every link followed as the thread's kernel walk does. The
// name of what opened is what d_path says, which is the path within the session.
std::optional<Found> look_up(pid_t tid, const std::string& path, bool follow) {
  const auto root = sys::open(proc(tid, "root"), O_PATH | O_DIRECTORY);
  if (!root) return std::nullopt;
  const auto fd = sys::openat2(root->get(), path, O_PATH | (follow ? 0U : O_NOFOLLOW), RESOLVE_IN_ROOT);
  if (!fd) return std::nullopt;
  struct stat st{};
  auto name = link_target("/proc/self/fd/" + std::to_string(fd->get()));
  if (!name || ::fstat(fd->get(), &st) != 0) return std::nullopt;
  return Found{std::move(*name), S_ISDIR(st.st_mode)};
}

std::string join(const std::string& base, const std::string& name) {
  if (name.starts_with('/')) return name;
  return base == "/" ? "/" + name : base + "/" + name;
}

std::pair<std::string, std::string> split(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

bool is_path_call(std::uint64_t number) {
  return std::ranges::any_of(named_paths(), [number](const NamedPath& row) { return row.number == number; });
}

}  // namespace

Tracer::Watch Observer::watch() {
  return {[this](pid_t tid, std::uint64_t number, const Args& args) { return entry(tid, number, args); },
          [this](const Call& call) { exit(call); }, [this](pid_t tid) { ending(tid); },
          [this](std::size_t threads) { sample(threads); }};
}

std::vector<std::string> Observer::entry(pid_t tid, std::uint64_t number, const Args& args) {
  std::vector<std::string> out;
  for (const NamedPath& row : named_paths())
    if (row.number == number) out.push_back(read_string(tid, args[static_cast<std::size_t>(row.path)]));
  if (number == SYS_connect || number == SYS_bind) {
    std::string bytes(std::min<std::uint64_t>(args[2], sizeof(sockaddr_storage)), '\0');
    bytes.resize(read_memory(tid, args[1], bytes.data(), bytes.size()));
    out.push_back(std::move(bytes));
  }
  if (number == SYS_close) {  // how large a written file became
    struct stat st{};
    const std::string file = proc(tid, "fd/" + std::to_string(static_cast<int>(args[0])));
    struct stat link{};
    if (::lstat(file.c_str(), &link) == 0 && (link.st_mode & S_IWUSR) != 0 && ::stat(file.c_str(), &st) == 0 &&
        S_ISREG(st.st_mode))
      seen_.peaks.file_size_bytes = std::max<std::uint64_t>(seen_.peaks.file_size_bytes, static_cast<std::uint64_t>(st.st_size));
  }
  return out;
}

void Observer::exit(const Call& call) {
  ++seen_.calls;
  seen_.used_calls.insert(call.number);
  processes_.insert(call.tid);
  std::size_t string = 0;
  for (const NamedPath& row : named_paths()) {
    if (row.number != call.number) continue;
    const std::string& path = call.strings[string++];
    unsigned use = row.use;
    if (row.kind == Kind::open) use = use_of_open(call.args[static_cast<std::size_t>(row.flags)]);
    if (row.kind == Kind::open_how) {
      std::uint64_t flags = 0;
      (void)read_memory(call.tid, call.args[static_cast<std::size_t>(row.flags)], &flags, sizeof flags);
      use = use_of_open(flags);
    }
    const int dir = row.dir == kCwd ? AT_FDCWD : static_cast<int>(call.args[static_cast<std::size_t>(row.dir)]);
    take_path(call, dir, path, use, row.follow);
    if (row.kind != Kind::path && call.result >= 0) {
      take_descriptor(call.tid, static_cast<std::uint64_t>(call.result), use);
      seen_.peaks.open_files = std::max(seen_.peaks.open_files, static_cast<std::uint64_t>(call.result) + 1);
    }
  }
  switch (call.number) {
    case SYS_getdents64:
      if (call.result >= 0) take_descriptor(call.tid, call.args[0], kListed);
      break;
    case SYS_mmap:
      if (call.result >= 0 || call.result < -4095)
        if ((call.args[2] & PROT_EXEC) != 0 && (call.args[3] & MAP_ANONYMOUS) == 0)
          take_descriptor(call.tid, call.args[4], kExecuted);
      break;
    case SYS_socket:
      if (call.result >= 0 && (call.args[0] == AF_INET || call.args[0] == AF_INET6)) seen_.inet = true;
      break;
    case SYS_connect:
    case SYS_bind:
      take_address(call, call.strings.empty() ? "" : call.strings[0]);
      break;
    default:
      break;
  }
  if ((call.result == -EPERM || call.result == -ENOSYS) && !is_path_call(call.number))
    ++seen_.refused_calls[call_name(call.number)];
}

void Observer::take_path(const Call& call, int dir, const std::string& path, unsigned use, bool follow) {
  if (use == 0) return;
  std::string base = "/";
  if (!path.starts_with('/')) {
    auto found =
        dir == AT_FDCWD ? link_target(proc(call.tid, "cwd")) : descriptor_path(call.tid, static_cast<std::uint64_t>(dir));
    if (!found || !found->starts_with('/')) return;
    base = std::move(*found);
  }
  if (path.empty()) return note(base, use, call.result, false);  // AT_EMPTY_PATH
  const std::string whole = join(base, path);
  if ((use & kEntries) != 0) {
    // The directory counts in which the entry was made or removed, and the entry's name.
    const auto [parent, name] = split(whole);
    if (const auto in = look_up(call.tid, parent, true); in && in->directory) {
      note(in->path, kEntries, call.result, true);
      note(join(in->path, name), use & ~unsigned{kEntries}, call.result, false);
      return;
    }
  }
  if (const auto found = look_up(call.tid, whole, follow)) return note(found->path, use, call.result, found->directory);
  const auto [parent, name] = split(whole);
  const auto in = look_up(call.tid, parent, true);
  note(in ? join(in->path, name) : whole, use, call.result, false);
}

void Observer::take_descriptor(pid_t tid, std::uint64_t fd, unsigned use) {
  if (auto path = descriptor_path(tid, fd)) note(*path, use & ~unsigned{kEntries}, 0, (use & kListed) != 0);
}

void Observer::take_address(const Call& call, const std::string& bytes) {
  sockaddr_storage address{};
  std::memcpy(&address, bytes.data(), std::min(bytes.size(), sizeof address));
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_UNIX && bytes.size() > sizeof(sa_family_t) && bytes[sizeof(sa_family_t)] == '/') {
    const std::string path(bytes.c_str() + sizeof(sa_family_t));
    take_path(call, AT_FDCWD, path, call.number == SYS_bind ? unsigned{kEntries} : unsigned{kWritten}, true);
  } else if (address.ss_family == AF_INET && call.number == SYS_connect) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address);
    if ((ntohl(in->sin_addr.s_addr) >> 24) != 127 && ::inet_ntop(AF_INET, &in->sin_addr, text, sizeof text) != nullptr)
      seen_.outside.insert(std::string(text) + ":" + std::to_string(ntohs(in->sin_port)));
  } else if (address.ss_family == AF_INET6 && call.number == SYS_connect) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&address);
    if (!IN6_IS_ADDR_LOOPBACK(&in->sin6_addr) && ::inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text) != nullptr)
      seen_.outside.insert("[" + std::string(text) + "]:" + std::to_string(ntohs(in->sin6_port)));
  }
}

void Observer::note(const std::string& path, unsigned use, std::int64_t result, bool directory) {
  if (use == 0) return;
  const auto at = seen_.paths.find(path);
  if (at == seen_.paths.end() && seen_.paths.size() >= kMaxPaths) {
    ++seen_.dropped;
    return;
  }
  Path& seen = at != seen_.paths.end() ? at->second : seen_.paths[path];
  seen.directory |= directory;
  if (result >= 0) seen.done |= use;
  else if (result == -EACCES || result == -EPERM || result == -EROFS) seen.refused |= use;
  else if (result == -ENOENT || result == -ENOTDIR) seen.missing |= use;
}

void Observer::ending(pid_t tid) {
  processes_.erase(tid);
  const std::string status = sys::read_file(proc(tid, "status"), 16384).value_or("");
  const std::uint64_t kib = std::strtoull(sys::status_field(status, "VmHWM").c_str(), nullptr, 10);
  seen_.peaks.memory_bytes = std::max(seen_.peaks.memory_bytes, kib * 1024);
  const std::string stat = sys::read_file(proc(tid, "stat"), 4096).value_or("");
  const auto name_end = stat.rfind(')');
  unsigned long long user = 0, system = 0;
  if (name_end != std::string::npos &&
      std::sscanf(stat.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) == 2) {
    const auto hertz = static_cast<unsigned long long>(::sysconf(_SC_CLK_TCK));
    seen_.peaks.cpu_seconds = std::max<std::uint64_t>(seen_.peaks.cpu_seconds, (user + system + hertz - 1) / hertz);
  }
}

void Observer::sample(std::size_t threads) {
  seen_.peaks.processes = std::max<std::uint64_t>(seen_.peaks.processes, threads);
  std::uint64_t sum = 0;
  for (const pid_t tid : processes_) {
    const std::string status = sys::read_file(proc(tid, "status"), 16384).value_or("");
    // Threads share their memory: it counts where the leader is.
    if (sys::status_field(status, "Tgid") == std::to_string(tid))
      sum += std::strtoull(sys::status_field(status, "VmRSS").c_str(), nullptr, 10) * 1024;
  }
  seen_.peaks.memory_bytes = std::max(seen_.peaks.memory_bytes, sum);
}

}  // namespace caisson::cli::learn
