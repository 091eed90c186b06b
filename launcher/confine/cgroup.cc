#include "launcher/confine/cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>

#include "launcher/base/sys.h"

namespace caisson::confine {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";

Result<std::string> read_at(int dir, const char* name) {
  TRY_ASSIGN(Fd fd, sys::openat(dir, name, O_RDONLY));
  return sys::read_fd(fd.get(), 65536);
}

// "key value" lines of memory.events, cpu.stat.
std::uint64_t field(const std::string& text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return std::strtoull(std::string(line.substr(key.size() + 1)).c_str(), nullptr, 10);
    at = end + 1;
  }
  return 0;
}

std::uint64_t number(int dir, const char* name) {
  const auto text = read_at(dir, name);
  return text ? std::strtoull(text->c_str(), nullptr, 10) : 0;
}

// Writes a limit and compares what the kernel says it is (memory.max is rounded down to pages).
Status set_limit(int dir, const char* name, const std::string& value) {
  TRY(sys::write_file_at(dir, name, value));
  TRY_ASSIGN(const std::string now, read_at(dir, name));
  if (now != value + "\n") return fail(Code::internal, std::string(name) + " is " + quote(now) + " after writing " + value);
  return {};
}

Result<Fd> make_dir(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir cgroup " + name);
  return sys::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
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
  const std::string path = kMount + self.substr(from, self.find('\n', from) - from);
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
  return {0, "", path};
}

Result<CgroupRoot> CgroupRoot::open(const std::string& path) {
  TRY_ASSIGN(Fd own, sys::open(path, O_RDONLY | O_DIRECTORY));
  // No process may live beside children with controllers, so everything of ours moves into a leaf first.
  TRY_ASSIGN(Fd leaf, make_dir(own.get(), "caisson-launcher"));
  TRY_ASSIGN(const std::string members, read_at(own.get(), "cgroup.procs"));
  for (std::size_t at = 0; at < members.size(); at = members.find('\n', at) + 1) {
    const std::string pid = members.substr(at, members.find('\n', at) - at);
    TRY(sys::write_file_at(leaf.get(), "cgroup.procs", pid));
  }
  TRY(sys::write_file_at(own.get(), "cgroup.subtree_control", "+memory +pids +cpu"));
  TRY_ASSIGN(Fd sessions, make_dir(own.get(), "caisson-sessions"));
  TRY(sys::write_file_at(sessions.get(), "cgroup.subtree_control", "+memory +pids +cpu"));
  return CgroupRoot(std::move(sessions));
}

Result<Cgroup> CgroupRoot::make(const std::string& name, const policy::Limits& limits) const {
  if (::mkdirat(dir_.get(), name.c_str(), 0755) != 0) return sys_error("mkdir cgroup " + name);
  auto dir = sys::openat(dir_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!dir) return std::unexpected(std::move(dir).error());
  Cgroup group(Fd(::fcntl(dir_.get(), F_DUPFD_CLOEXEC, 3)), std::move(*dir), name);
  auto set = [&]() -> Status {
    TRY(set_limit(group.fd(), "memory.max", std::to_string(limits.memory_bytes / 4096 * 4096)));
    TRY(set_limit(group.fd(), "memory.oom.group", "1"));
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
  s.memory_current = number(fd(), "memory.current");
  s.memory_peak = number(fd(), "memory.peak");
  s.pids_current = number(fd(), "pids.current");
  s.cpu_us = field(read_at(fd(), "cpu.stat").value_or(""), "usage_usec");
  s.oom_kills = field(read_at(fd(), "memory.events").value_or(""), "oom_kill");
  s.pids_refused = field(read_at(fd(), "pids.events").value_or(""), "max");
  return s;
}

Status Cgroup::kill() const { return sys::write_file_at(fd(), "cgroup.kill", "1"); }

Status Cgroup::remove() {
  if (::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) != 0) return sys_error("rmdir cgroup " + name_);
  return {};
}

}  // namespace caisson::confine
