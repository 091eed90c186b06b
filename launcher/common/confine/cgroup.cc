#include "launcher/common/confine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <vector>

#include "launcher/common/base/sys.h"

namespace caisson::confine {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";
constexpr const char* kLauncherLeaf = "caisson-launcher";
constexpr const char* kSessions = "caisson-sessions";
constexpr const char* kControllers = "+memory +pids +cpu";
constexpr int kMoveRounds = 100;

Result<std::string> read_at(int dir, const char* name) {
  TRY_ASSIGN(Fd fd, sys::openat(dir, name, O_RDONLY));
  return sys::read_fd(fd.get(), 65536);
}

// "key value" lines of memory.events, cpu.stat.
std::uint64_t field(const std::string& text, const std::string& key) {
  const std::size_t at = ("\n" + text).find("\n" + key + " ");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + key.size() + 1, nullptr, 10);
}

std::optional<std::uint64_t> number(int dir, const char* name) {
  const auto text = read_at(dir, name);
  if (!text) return std::nullopt;
  return std::strtoull(text->c_str(), nullptr, 10);
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" of *.pressure, which cannot be read where PSI is switched off.
std::optional<std::uint64_t> pressure(int dir, const char* name) {
  const std::string text = read_at(dir, name).value_or("");
  const std::size_t total = text.find("total=");
  if (!text.starts_with("some ") || total == std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str() + total + 6, nullptr, 10);
}

std::vector<std::string> members(const std::string& procs) {
  std::istringstream words(procs);
  return {std::istream_iterator<std::string>(words), {}};
}

// The root of the whole hierarchy has no limits and no cgroup.type; a container's root, a namespace's, has both.
bool is_real_root(int dir) { return ::faccessat(dir, "cgroup.type", F_OK, 0) != 0; }

// Where everything in our cgroup is ours to move: the root of a cgroup namespace holds a container's processes alone.
bool is_namespace_root(const std::string& path, int dir) { return path == kMount && !is_real_root(dir); }

// Empties our cgroup into the leaf: no process may live beside children that have controllers. Only in the real root that
// rule does not hold, and the rest of the host lives there.
Status move_processes(int from, int leaf) {
  if (is_real_root(from)) return sys::write_file_at(leaf, "cgroup.procs", "0");
  for (int round = 0; round < kMoveRounds; ++round) {
    TRY_ASSIGN(const std::string procs, read_at(from, "cgroup.procs"));
    if (procs.empty()) return {};
    for (const std::string& pid : members(procs)) {
      // Of another PID namespace, and as a number here: ourselves.
      if (pid == "0") return fail(Code::unavailable, "a process that is not visible to us shares our cgroup");
      // ESRCH: it has ended. A child that it forked meanwhile is in the next round's list.
      if (auto moved = sys::write_file_at(leaf, "cgroup.procs", pid); !moved && moved.error().sys != ESRCH) return moved;
    }
  }
  return fail(Code::unavailable, "the processes in our cgroup fork faster than they can be moved");
}

// Writes a limit and compares what the kernel says it is (memory.max is rounded down to pages).
Status set_limit(int dir, const char* name, const std::string& value) {
  TRY(sys::write_file_at(dir, name, value));
  TRY_ASSIGN(const std::string now, read_at(dir, name));
  if (now != value + "\n") return fail(Code::internal, std::string(name) + " is " + quote(now) + " after writing " + value);
  return {};
}

Status set_io_limit(int dir, const std::string& disk, const policy::Limits& limits) {
  const auto text = [](std::uint64_t value) { return value == policy::kNoIoLimit ? "max" : std::to_string(value); };
  const std::string line =
      disk + " rbps=" + text(limits.io_read_bytes_per_second) + " wbps=" + text(limits.io_write_bytes_per_second);
  TRY(sys::write_file_at(dir, "io.max", line));
  TRY_ASSIGN(const std::string now, read_at(dir, "io.max"));
  if (("\n" + now).find("\n" + line + " ") == std::string::npos)
    return fail(Code::internal, "io.max is " + quote(now) + " after writing " + line);
  return {};
}

Result<Fd> make_dir(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir cgroup " + name);
  return sys::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// Of a launcher that was killed: its sessions are gone with it, their empty leaves and the nodes of workspaces are not. One with
// a process in it, or with children that are not ours, the kernel keeps (EBUSY), and no other name is touched.
void remove_leftovers(int parent) {
  auto again = sys::openat(parent, ".", O_RDONLY | O_DIRECTORY);
  DIR* dir = again ? ::fdopendir(again->release()) : nullptr;
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const bool node = std::string_view(entry->d_name).starts_with(CgroupRoot::kNodePrefix);
    if (!node && !std::string_view(entry->d_name).starts_with(CgroupRoot::kSessionPrefix)) continue;
    if (auto inner = sys::openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW); node && inner)
      remove_leftovers(inner->get());
    (void)::unlinkat(parent, entry->d_name, AT_REMOVEDIR);
  }
  (void)::closedir(dir);
}

}  // namespace

CgroupRoot::Found CgroupRoot::look() {
  struct statfs fs{};
  if (::statfs(kMount, &fs) != 0) return {errno, "no /sys/fs/cgroup", ""};
  if (fs.f_type != CGROUP2_SUPER_MAGIC) return {ENOTSUP, "cgroup v1 host: v2 is not mounted at /sys/fs/cgroup", ""};
  const std::string self = sys::read_file("/proc/self/cgroup", 65536).value_or("");
  const auto at = self.rfind("0::", 0) == 0 ? 0 : self.find("\n0::");
  if (at == std::string::npos) return {ENOTSUP, "no v2 line in /proc/self/cgroup", ""};
  const auto from = self.find("::", at) + 2;
  std::string path = kMount + self.substr(from, self.find('\n', from) - from);
  while (path.ends_with('/')) path.pop_back();
  // A launcher that was here before us, or the one that we are asked beside (`caisson probe` in a container), made this leaf.
  if (const std::string leaf = std::string("/") + kLauncherLeaf; path.ends_with(leaf)) path.resize(path.size() - leaf.size());
  auto dir = sys::open(path, O_RDONLY | O_DIRECTORY);
  if (!dir) return {dir.error().sys, "our own cgroup is not visible", path};
  const auto controllers = read_at(dir->get(), "cgroup.controllers");
  for (const char* wanted : {"memory", "pids", "cpu"})
    if (!controllers || (" " + *controllers).find(std::string(" ") + wanted) == std::string::npos)
      return {ENOTSUP, std::string("controller ") + wanted + " is not delegated to us", path};
  if (::faccessat(dir->get(), "cgroup.subtree_control", W_OK, AT_EACCESS) != 0)
    return {errno,
            errno == EROFS ? "/sys/fs/cgroup is read-only: give docker --security-opt writable-cgroups=true or podman "
                             "--security-opt unmask=/sys/fs/cgroup"
                           : "our cgroup is not delegated to us",
            path};
  // A shell's cgroup on a host: its other processes are not ours to move, and with them in it no limits can be delegated.
  if (!is_namespace_root(path, dir->get()) && !is_real_root(dir->get()))
    for (const std::string& pid : members(read_at(dir->get(), "cgroup.procs").value_or("")))
      if (pid != std::to_string(::getpid()))
        return {EBUSY,
                "other processes share our cgroup: start the launcher in one of its own, as a service with Delegate=yes or "
                "with systemd-run --scope -p Delegate=yes",
                path};
  return {0, "", path, (" " + *controllers).find(" io") != std::string::npos};
}

Result<CgroupRoot> CgroupRoot::open(const std::string& path) {
  TRY_ASSIGN(Fd own, sys::open(path, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(Fd leaf, make_dir(own.get(), kLauncherLeaf));
  TRY(move_processes(own.get(), leaf.get()));
  TRY(sys::write_file_at(own.get(), "cgroup.subtree_control", kControllers));
  TRY_ASSIGN(Fd sessions, make_dir(own.get(), kSessions));
  remove_leftovers(sessions.get());
  TRY(sys::write_file_at(sessions.get(), "cgroup.subtree_control", kControllers));
  const bool io = sys::write_file_at(own.get(), "cgroup.subtree_control", "+io").has_value() &&
                  sys::write_file_at(sessions.get(), "cgroup.subtree_control", "+io").has_value();
  return CgroupRoot(std::move(sessions), io);
}

Result<Cgroup> CgroupRoot::make(const std::string& name, const policy::Limits& limits, const std::vector<std::string>& disks,
                                const Cgroup* workspace) const {
  return make_in(workspace != nullptr ? workspace->fd() : dir_.get(), name, limits, &disks);
}

Result<Cgroup> CgroupRoot::make_node(const std::string& name, const policy::Limits& limits) const {
  return make_in(dir_.get(), name, limits, nullptr);
}

Result<Cgroup> CgroupRoot::make_in(int parent, const std::string& name, const policy::Limits& limits,
                                   const std::vector<std::string>* disks) const {
  if (::mkdirat(parent, name.c_str(), 0755) != 0) return sys_error("mkdir cgroup " + name);
  auto dir = sys::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!dir) return std::unexpected(std::move(dir).error());
  Cgroup group(Fd(::fcntl(parent, F_DUPFD_CLOEXEC, 3)), std::move(*dir), name);
  auto set = [&]() -> Status {
    TRY(set_limit(group.fd(), "memory.max", std::to_string(limits.memory_bytes / 4096 * 4096)));
    // Memory that runs out in a workspace takes one session, the victim's, not all of them.
    if (disks != nullptr) {
      TRY(set_limit(group.fd(), "memory.oom.group", "1"));
      for (const std::string& disk : *disks) TRY(set_io_limit(group.fd(), disk, limits));
    } else {
      TRY(sys::write_file_at(group.fd(), "cgroup.subtree_control", kControllers));
      if (io_) TRY(sys::write_file_at(group.fd(), "cgroup.subtree_control", "+io"));
    }
    TRY(set_limit(group.fd(), "pids.max", std::to_string(limits.processes)));
    TRY(set_limit(group.fd(), "cpu.max", std::to_string(limits.cpu_percent * 1000) + " 100000"));
    // Absent without swap accounting: memory.max then counts all there is.
    if (auto swap = sys::write_file_at(group.fd(), "memory.swap.max", "0"); !swap && swap.error().sys != ENOENT) return swap;
    return {};
  };
  if (Status done = set(); !done) {
    (void)group.remove();
    return std::unexpected(std::move(done).error());
  }
  return group;
}

CgroupStats Cgroup::stats() const {
  CgroupStats s;
  s.memory_current = number(fd(), "memory.current").value_or(0);
  s.memory_peak = number(fd(), "memory.peak").value_or(0);
  s.pids_current = number(fd(), "pids.current").value_or(0);
  s.pids_peak = number(fd(), "pids.peak");
  s.cpu_us = field(read_at(fd(), "cpu.stat").value_or(""), "usage_usec");
  s.oom_kills = field(read_at(fd(), "memory.events").value_or(""), "oom_kill");
  s.pids_refused = field(read_at(fd(), "pids.events").value_or(""), "max");
  s.pressure = {pressure(fd(), "memory.pressure"), pressure(fd(), "cpu.pressure"), pressure(fd(), "io.pressure")};
  return s;
}

bool Cgroup::out_of_memory() const { return field(read_at(fd(), "memory.events").value_or(""), "oom_kill") > 0; }

bool Cgroup::holds(pid_t pid) const {
  const auto pids = members(read_at(fd(), "cgroup.procs").value_or(""));
  return std::ranges::find(pids, std::to_string(pid)) != pids.end();
}

std::string Cgroup::io_limits() const { return read_at(fd(), "io.max").value_or(""); }

Result<std::vector<std::string>> disks_of(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return sys_error("stat " + quote(path));
    const std::string number = std::to_string(::major(st.st_dev)) + ":" + std::to_string(::minor(st.st_dev));
    const std::string block = "/sys/dev/block/" + number;
    if (::access(block.c_str(), F_OK) != 0)
      return fail(Code::unavailable, quote(path) + " is on a filesystem without a disk of its own: mount a volume there");
    std::string disk = number;
    if (::access((block + "/partition").c_str(), F_OK) == 0) {
      TRY_ASSIGN(disk, sys::read_file(block + "/../dev", 64));
      disk.erase(disk.find_last_not_of('\n') + 1);
    }
    if (std::ranges::find(out, disk) == out.end()) out.push_back(std::move(disk));
  }
  return out;
}

Status Cgroup::kill() const { return sys::write_file_at(fd(), "cgroup.kill", "1"); }

Status Cgroup::remove() {
  if (::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) != 0) return sys_error("rmdir cgroup " + name_);
  return {};
}

}  // namespace caisson::confine
