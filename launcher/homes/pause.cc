#include "launcher/homes/pause.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"
#include "launcher/homes/processes.h"

namespace caisson::homes {
namespace {

constexpr std::int64_t kMostUs = 20'000'000;
constexpr int kOrderly = 500;  // passes, of a millisecond at least
constexpr int kSweeps = 200;
constexpr std::size_t kMostLeft = 200;  // the answer is bounded

// As the kernel lists them, in microseconds; a first process has one thread. Empty where it keeps no such list.
std::vector<pid_t> children_of(pid_t root) {
  const std::string number = std::to_string(root);
  const auto text = sys::read_file("/proc/" + number + "/task/" + number + "/children", 1 << 20);
  std::vector<pid_t> out;
  const char* at = text ? text->c_str() : "";
  for (char* end = nullptr; const long pid = std::strtol(at, &end, 10); at = end) out.push_back(static_cast<pid_t>(pid));
  return out;
}

// ",12,34,": bounded, as the answer is.
std::string listed(const std::vector<pid_t>& pids) {
  std::string out = ",";
  for (std::size_t i = 0; i < std::min(pids.size(), kMostLeft); ++i) out += std::to_string(pids[i]) + ",";
  return out;
}

bool stands(char state) { return state == 'T' || state == 't' || state == 'Z' || state == 'X'; }

// Looks at every thread: a tracer stops only one, and a leader may end before its threads. A thread that waits in the kernel with
// a stop pending does nothing before it stops.
bool all_stand(pid_t pid, bool or_wait) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/task";
  auto fd = sys::open(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return true;  // it has ended
  const auto tasks = sys::read_directory(std::move(*fd));
  if (!tasks) return false;
  while (const char* name = sys::next_name(tasks->get()))
    if (const auto one = look_at(directory + "/" + name); one && !stands(one->state) && !(or_wait && one->state == 'D'))
      return false;
  return true;
}

// Its number may be another's by now: what the descriptor names is looked at before it gets the signal.
bool signal_if(pid_t pid, int signal, const std::function<bool(const Seen&)>& same) {
  const auto process = sys::pidfd_open(pid);
  const auto now = look_at("/proc/" + std::to_string(pid));
  return process && now && same(*now) && sys::pidfd_send_signal(process->get(), signal);
}

bool signal_to(pid_t pid, int signal, const Seen& seen) {
  return signal_if(pid, signal, [&seen](const Seen& now) { return now.start == seen.start; });
}

}  // namespace

// A process that stands does not fork, but a stop does not end a fork that has begun (copy_process in kernel/fork.c looks for
// signals once, at its start). So a look at /proc has seen all when it began after all stood, and finds no new process. Parents
// first, and each before its children: a shell that still runs would take a child's stop for the user's Ctrl-Z. One that waits in
// vfork cannot stop before its child has gone on; after kOrderly passes no process is waited for.
Result<json::Value> stop_all(const std::vector<pid_t>& roots) {
  std::set<std::pair<pid_t, unsigned long>> sent;
  std::set<pid_t> swept;
  std::vector<pid_t> left;
  const std::set<pid_t> first(roots.begin(), roots.end());
  const std::int64_t until = sys::monotonic_us() + kMostUs;
  bool stood = false;  // all of them, before this look
  for (int pass = 0; sys::monotonic_us() < until; ++pass) {
    TRY_ASSIGN(const Table table, read_table());
    bool done = true;
    for (const pid_t pid : members(table, roots)) {
      const Seen& one = table.at(pid);
      const std::pair key(pid, one.start);
      if (sent.contains(key)) {
        done = done && all_stand(pid, true);
        continue;
      }
      done = false;
      const auto parent = table.find(one.parent);
      if (!first.contains(pid) && pass < kOrderly && parent != table.end() && !stands(parent->second.state)) continue;
      const bool before = (one.state == 'T' || one.state == 't') && !swept.contains(pid) && all_stand(pid, false);
      if (before) left.push_back(pid);
      else (void)signal_to(pid, SIGSTOP, one);
      sent.insert(key);
    }
    if (done && stood) return json::Value{{"stopped", sent.size() - left.size()}, {"left", listed(left)}};
    stood = done;
    // Who forks and ends is gone before such a look is over; its child is an orphan, and so the first process's.
    for (int sweep = 0; pass > 0 && sweep < kSweeps; ++sweep)
      for (const pid_t root : roots)
        for (const pid_t pid : children_of(root))
          if (!table.contains(pid) && signal_if(pid, SIGSTOP, [root](const Seen& now) { return now.parent == root; }))
            swept.insert(pid);
    ::usleep(1000);
  }
  TRY(continue_all(roots, listed(left)));
  return fail(Code::timeout, "its processes could not all be stopped");
}

// Children first: a shell that goes on finds none of them stopped.
Result<json::Value> continue_all(const std::vector<pid_t>& roots, const std::string& left) {
  TRY_ASSIGN(const Table table, read_table());
  std::vector<pid_t> all = members(table, roots);
  std::ranges::reverse(all);
  for (const pid_t pid : all)
    if (!left.contains("," + std::to_string(pid) + ",")) (void)signal_to(pid, SIGCONT, table.at(pid));
  return json::Value{{"continued", all.size()}};
}

// A process in a system call that does not end stands still later, or never: nothing is said before the kernel says it.
Result<json::Value> freeze_all(int cgroup, bool freeze) {
  const std::string_view wanted = freeze ? "frozen 1\n" : "frozen 0\n";
  TRY(sys::write_file_at(cgroup, "cgroup.freeze", freeze ? "1" : "0"));
  for (const std::int64_t until = sys::monotonic_us() + kMostUs; sys::monotonic_us() < until; ::usleep(1000)) {
    TRY_ASSIGN(const Fd file, sys::openat(cgroup, "cgroup.events", O_RDONLY));
    TRY_ASSIGN(const std::string events, sys::read_fd(file.get(), 4096));
    if (events.contains(wanted)) return json::Value::object();
  }
  TRY(sys::write_file_at(cgroup, "cgroup.freeze", freeze ? "0" : "1"));
  return fail(Code::timeout, "its cgroup does not say \"" + std::string(wanted.substr(0, wanted.size() - 1)) + "\"");
}

}  // namespace caisson::homes
