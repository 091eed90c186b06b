// Follows a program and all that it starts with ptrace(2), and tells of every system call's end while its thread is stopped.
// Only processes below caisson-init are looked at: what builds the session runs on undisturbed. ptrace and not a seccomp
// notification, because results count here (what failed, what a path led to), and speed does not.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::cli::learn {

struct Call {
  pid_t tid = 0;
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> args{};
  std::int64_t result = 0;           // negative: -errno
  std::vector<std::string> strings;  // what `entry` returned for it
};

class Tracer {
 public:
  struct Watch {
    // At a call's beginning: the strings that must be read before it runs (execve replaces them).
    std::function<std::vector<std::string>(pid_t tid, std::uint64_t number, const std::array<std::uint64_t, 6>& args)> entry;
    std::function<void(const Call&)> exit;
    std::function<void(pid_t tid)> ending;            // about to exit; /proc/<tid> is still whole
    std::function<void(std::size_t threads)> sample;  // now and then; how many lived at one time so far
  };
  explicit Tracer(Watch watch) : watch_(std::move(watch)) {}

  // Starts argv (a `caisson run`) and returns its exit status, or 128 + its signal.
  [[nodiscard]] Result<int> run(const std::vector<std::string>& argv);
  // Follows living processes (every thread of them) and what they start, until they end, SIGINT or SIGTERM comes, or `seconds`
  // have passed (0: no end). They run on afterwards.
  [[nodiscard]] Status attach(const std::vector<pid_t>& processes, unsigned seconds);

  [[nodiscard]] std::uint64_t processes() const { return processes_; }
  [[nodiscard]] std::size_t peak_threads() const { return peak_; }

 private:
  enum class Role { builder, init, command };
  struct Thread {
    Role role = Role::builder;
    bool inside = false;  // of a system call
    Call call;
  };
  [[nodiscard]] Status loop(pid_t leader, int* status);
  void stopped(pid_t tid, int status);
  void at_syscall(pid_t tid, Thread& thread);
  void at_event(pid_t tid, Thread& thread, int event);
  void resume(pid_t tid, int signal);
  void detach_all();
  [[nodiscard]] std::size_t alive() const;

  Watch watch_;
  std::map<pid_t, Thread> threads_;
  std::set<pid_t> early_;  // stopped before their parent's event told who they are
  std::uint64_t processes_ = 0, stops_ = 0;
  std::size_t peak_ = 0;
};

// Bytes of a stopped thread's memory, fewer where a page is missing. A string up to its NUL, at most PATH_MAX.
[[nodiscard]] std::size_t read_memory(pid_t tid, std::uint64_t address, void* into, std::size_t size);
[[nodiscard]] std::string read_string(pid_t tid, std::uint64_t address);

}  // namespace caisson::cli::learn
