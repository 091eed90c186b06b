#include "launcher/pid1/session/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>
#include <string>

#include "launcher/common/base/sys.h"

namespace caisson::session {

namespace {

constexpr std::size_t kMostMembers = 1'000'000;  // of one tree: whoever reads it while it changes may go in circles
constexpr unsigned long kWorthAsking = 32UL << 20;

// "Name:   123 kB" of a /proc file, in bytes; 0 when it cannot be read.
std::uint64_t kib_field(const std::string& path, const char* name) {
  const auto text = sys::read_file(path, 16384);
  const auto at = text ? text->find(name) : std::string::npos;
  return at == std::string::npos ? 0 : std::strtoull(text->c_str() + at + std::strlen(name), nullptr, 10) * 1024;
}

// Anonymous and shared memory of one process that is resident, whoever else has it.
std::uint64_t resident_alone(pid_t pid) {
  static const auto page = static_cast<unsigned long>(::sysconf(_SC_PAGESIZE));
  const std::string base = "/proc/" + std::to_string(pid);
  unsigned long resident = 0, shared = 0;
  const auto statm = sys::read_file(base + "/statm", 256);
  if (!statm || std::sscanf(statm->c_str(), "%*u %lu %lu", &resident, &shared) != 2) return 0;
  // "shared" holds mapped files, too, which are not the session's; asked for only where it could matter.
  return (resident > shared ? (resident - shared) * page : 0) +
         (shared * page > kWorthAsking ? kib_field(base + "/status", "RssShmem:") : 0);
}

}  // namespace

ProcessTree ProcessTree::read() {
  ProcessTree tree;
  static const long tick = ::sysconf(_SC_CLK_TCK);
  timespec boot{};  // what the kernel counts a process's start from
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const std::int64_t boot_us = std::int64_t{boot.tv_sec} * 1'000'000 + boot.tv_nsec / 1000;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return tree;
  while (const dirent* entry = ::readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    const std::string base = std::string("/proc/") + entry->d_name;
    const auto stat = sys::read_file(base + "/stat", 4096);
    if (!stat) continue;
    // The name in parentheses may hold anything, parentheses and spaces too: the fields begin behind the last one.
    const auto close = stat->rfind(')');
    if (close == std::string::npos) continue;
    int parent = 0;
    unsigned long user = 0, system = 0, start = 0;
    Process p;
    if (std::sscanf(stat->c_str() + close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %lu %*d %lu",
                    &p.state, &parent, &user, &system, &p.threads, &start) != 6)
      continue;
    p.name = stat->substr(stat->find('(') + 1, close - stat->find('(') - 1);
    p.age_us = boot_us - static_cast<std::int64_t>(start * 1'000'000UL / static_cast<unsigned long>(tick));
    p.cpu_us = (user + system) * 1'000'000UL / static_cast<unsigned long>(tick);
    p.memory_bytes = resident_alone(pid);
    tree.processes_[pid] = std::move(p);
    tree.children_.emplace(parent, pid);
  }
  ::closedir(proc);
  return tree;
}

std::vector<pid_t> ProcessTree::descendants(pid_t root) const {
  std::vector<pid_t> out, todo{root};
  while (!todo.empty() && out.size() < kMostMembers) {
    const pid_t at = todo.back();
    todo.pop_back();
    const auto [from, to] = children_.equal_range(at);
    for (auto it = from; it != to; ++it) {
      out.push_back(it->second);
      todo.push_back(it->second);
    }
  }
  return out;
}

std::vector<pid_t> ProcessTree::children(pid_t parent) const {
  std::vector<pid_t> out;
  const auto [from, to] = children_.equal_range(parent);
  for (auto it = from; it != to; ++it) out.push_back(it->second);
  return out;
}

Usage ProcessTree::usage(pid_t root) const {
  Usage sum;
  std::vector<pid_t> all = descendants(root);
  all.push_back(root);
  for (const pid_t pid : all) {
    const auto it = processes_.find(pid);
    if (it == processes_.end()) continue;
    sum.processes += it->second.threads;
    sum.memory_bytes += it->second.memory_bytes;
    sum.cpu_us += it->second.cpu_us;
  }
  return sum;
}

std::vector<Process> ProcessTree::largest(pid_t root, std::int64_t most) const {
  std::vector<std::pair<const Process*, pid_t>> all;
  std::vector<pid_t> pids = descendants(root);
  pids.push_back(root);
  for (const pid_t pid : pids)
    if (const auto it = processes_.find(pid); it != processes_.end()) all.emplace_back(&it->second, pid);
  const auto count = std::min(all.size(), static_cast<std::size_t>(most));
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count), std::ranges::greater{},
                            [](const auto& p) { return p.first->memory_bytes; });
  std::vector<Process> out;
  for (const auto& [process, pid] : std::span(all).first(count)) {
    if (process->inner == 0) {
      const std::string status = sys::read_file("/proc/" + std::to_string(pid) + "/status", 16384).value_or("");
      const std::string ids = sys::status_field(status, "NSpid");  // "4711 12", the innermost last
      process->inner = std::strtol(ids.c_str() + ids.find_last_of(" \t") + 1, nullptr, 10);
    }
    out.push_back(*process);
  }
  return out;
}

std::uint64_t ProcessTree::files_in_memory() { return kib_field("/proc/meminfo", "Shmem:"); }

namespace {

// false: perhaps not all of them, for a thread has ended since, or this kernel has no such list.
bool list_children(pid_t parent, std::vector<pid_t>& out) {
  const std::string base = "/proc/" + std::to_string(parent) + "/task/";
  DIR* tasks = ::opendir(base.c_str());
  if (tasks == nullptr) return true;  // it is gone
  bool listed = true;
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const auto text = sys::read_file(base + entry->d_name + "/children", 1 << 20);
    if (!text) {
      listed = false;
      continue;
    }
    const char* at = text->c_str();
    for (char* end = nullptr; const long pid = std::strtol(at, &end, 10); at = end) out.push_back(static_cast<pid_t>(pid));
  }
  ::closedir(tasks);
  return listed;
}

// Below `root`. By its own branches, not a pass over /proc: at the end of a launcher with hundreds of sessions each would read
// all of them. Whom this misses has lost or will lose its parent, and is root's by the next round.
std::vector<pid_t> members_of(pid_t root) {
  static const bool lists = ::access("/proc/thread-self/children", F_OK) == 0;
  if (!lists) return ProcessTree::read().descendants(root);
  std::vector<pid_t> out;
  (void)list_children(root, out);
  for (std::size_t at = 0; at < out.size() && out.size() < kMostMembers; ++at) {
    const pid_t parent = out[at];
    (void)list_children(parent, out);
  }
  return out;
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  return list_children(parent, out) ? out : ProcessTree::read().children(parent);
}

namespace {

constexpr int kSweeps = 200;

}  // namespace

void kill_uid(uid_t uid) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(sys::kEndingUid, uid, sys::kEndingUid) == 0 && ::geteuid() == uid) ::kill(-1, SIGKILL);
    ::_exit(0);
  }
  if (pid > 0) sys::reap(pid);
}

void kill_tree(pid_t root, uid_t uid, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if (uid != 0) kill_uid(uid);
    bool alive = false;
    for (const pid_t pid : members_of(root))
      if (::kill(pid, SIGKILL) == 0) alive = true;  // a zombie answers too, until its parent reaps it
    // Orphans become root's children. Whoever forks and ends is met here, between two of its forks.
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const std::vector<pid_t> now = children_of(root);
      if (now.empty()) break;
      for (const pid_t pid : now) (void)::kill(pid, SIGKILL);
      alive = true;
    }
    if (!alive) break;
    ::usleep(1000);
  }
  // Our own unreaped child: the pid cannot have been reused.
  (void)::kill(root, SIGKILL);
}

}  // namespace caisson::session
