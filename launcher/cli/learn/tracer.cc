#include "launcher/cli/learn/tracer.h"

#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "launcher/common/base/sys.h"

namespace caisson::cli::learn {
namespace {

// linux/ptrace.h and sys/ptrace.h cannot be included together.
constexpr unsigned kGetSyscallInfo = 0x420e;  // PTRACE_GET_SYSCALL_INFO, Linux 5.3
struct SyscallInfo {
  std::uint8_t op;  // 1 entry, 2 exit
  std::uint8_t pad[3];
  std::uint32_t arch;
  std::uint64_t instruction_pointer, stack_pointer;
  union {
    struct {
      std::uint64_t number, args[6];
    } entry;
    struct {
      std::int64_t result;
      std::uint8_t is_error;
    } exit;
  };
};

constexpr unsigned long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                                   PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;
constexpr std::uint64_t kSampleEvery = 512;  // stops

volatile sig_atomic_t interrupted = 0;
void on_signal(int) { interrupted = 1; }

long trace(unsigned request, pid_t tid, unsigned long address, unsigned long data) {
  return ::ptrace(static_cast<__ptrace_request>(request), tid, address, data);
}

}  // namespace

std::size_t read_memory(pid_t tid, std::uint64_t address, void* into, std::size_t size) {
  const iovec local{into, size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  const ssize_t n = ::process_vm_readv(tid, &local, 1, &remote, 1, 0);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::string read_string(pid_t tid, std::uint64_t address) {
  std::string out;
  char chunk[256];
  while (out.size() < PATH_MAX) {
    // Up to the end of the page: the next one may not be there.
    const std::size_t want = std::min<std::size_t>(sizeof chunk, 4096 - ((address + out.size()) & 4095));
    const std::size_t got = read_memory(tid, address + out.size(), chunk, want);
    const std::size_t length = ::strnlen(chunk, got);
    out.append(chunk, length);
    if (got == 0 || length < got) break;
  }
  return out;
}

Result<int> Tracer::run(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  TRY_ASSIGN(auto gate, sys::pipe());
  const pid_t child = ::fork();
  if (child < 0) return sys_error("fork");
  if (child == 0) {
    char go = 0;
    gate.second.reset();
    if (::read(gate.first.get(), &go, 1) == 1) ::execv(words[0], words.data());
    ::_exit(127);
  }
  threads_[child] = {};
  // PTRACE_O_EXITKILL: with us, all of it ends.
  if (trace(PTRACE_SEIZE, child, 0, kOptions | PTRACE_O_EXITKILL) != 0) {
    const int error = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return sys_error("ptrace", error);
  }
  if (::write(gate.second.get(), "g", 1) != 1) return sys_error("write to the traced process");
  int status = 0;
  TRY(loop(child, &status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Status Tracer::attach(const std::vector<pid_t>& processes, unsigned seconds) {
  struct sigaction action{};
  action.sa_handler = on_signal;  // without SA_RESTART: waitpid is to return
  interrupted = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGALRM}) ::sigaction(signal, &action, nullptr);
  for (const pid_t pid : processes) {
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", ignored)) {
      const pid_t tid = static_cast<pid_t>(std::strtol(task.path().filename().c_str(), nullptr, 10));
      if (trace(PTRACE_SEIZE, tid, 0, kOptions) != 0) {
        if (errno == ESRCH) continue;
        return sys_error("ptrace process " + std::to_string(tid));
      }
      threads_[tid].role = pid == processes.front() ? Role::init : Role::command;
      trace(PTRACE_INTERRUPT, tid, 0, 0);
    }
  }
  if (threads_.empty()) return fail(Code::not_found, "the session has no process");
  ::alarm(seconds);
  Status done = loop(0, nullptr);
  detach_all();
  return done;
}

Status Tracer::loop(pid_t leader, int* leader_status) {
  while (interrupted == 0 || leader != 0) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL);
    if (tid < 0 && errno == EINTR) continue;
    if (tid < 0 && errno == ECHILD) break;
    if (tid < 0) return sys_error("waitpid");
    if (WIFSTOPPED(status)) {
      stopped(tid, status);
      continue;
    }
    threads_.erase(tid);
    if (tid == leader) *leader_status = status;
    // The session ends with its builder; nothing of it is left to wait for.
    if (threads_.empty()) break;
  }
  return {};
}

void Tracer::stopped(pid_t tid, int status) {
  const auto it = threads_.find(tid);
  if (it == threads_.end()) {
    early_.insert(tid);
    return;
  }
  Thread& thread = it->second;
  const int event = status >> 16, signal = WSTOPSIG(status);
  if (signal == (SIGTRAP | 0x80)) {
    at_syscall(tid, thread);
    return resume(tid, 0);
  }
  if (event == PTRACE_EVENT_STOP) {
    // A group stop stays one; the first stop of a new thread, or one that we asked for, ends here.
    if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
      trace(PTRACE_LISTEN, tid, 0, 0);
      return;
    }
    return resume(tid, 0);
  }
  if (event != 0) {
    at_event(tid, thread, event);
    return resume(tid, 0);
  }
  resume(tid, signal);
}

void Tracer::at_event(pid_t tid, Thread& thread, int event) {
  if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
    unsigned long child = 0;
    if (trace(PTRACE_GETEVENTMSG, tid, 0, reinterpret_cast<unsigned long>(&child)) != 0) return;
    const pid_t born = static_cast<pid_t>(child);
    const Role role = thread.role == Role::builder ? Role::builder : Role::command;
    threads_[born].role = role;
    if (role == Role::command && event != PTRACE_EVENT_CLONE) ++processes_;
    peak_ = std::max(peak_, alive());
    if (early_.erase(born) > 0) resume(born, 0);
  } else if (event == PTRACE_EVENT_EXEC) {
    // An exec by another thread than the leader takes the leader's number, and the others are gone without a word.
    unsigned long former = 0;
    if (trace(PTRACE_GETEVENTMSG, tid, 0, reinterpret_cast<unsigned long>(&former)) == 0 && static_cast<pid_t>(former) != tid) {
      const auto was = threads_.find(static_cast<pid_t>(former));
      if (was != threads_.end()) {
        thread = std::move(was->second);
        threads_.erase(was);
      }
    }
    if (thread.role == Role::builder &&
        sys::read_file("/proc/" + std::to_string(tid) + "/comm", 64).value_or("") == "caisson-init\n")
      thread.role = Role::init;
  } else if (event == PTRACE_EVENT_EXIT && thread.role == Role::command) {
    watch_.ending(tid);
  }
}

void Tracer::at_syscall(pid_t tid, Thread& thread) {
  SyscallInfo info{};
  if (trace(kGetSyscallInfo, tid, sizeof info, reinterpret_cast<unsigned long>(&info)) <= 0) return;
  if (info.op == 1) {
    thread.inside = true;
    thread.call = {tid, info.entry.number, {}, 0, {}};
    std::copy(std::begin(info.entry.args), std::end(info.entry.args), thread.call.args.begin());
    thread.call.strings = watch_.entry(tid, thread.call.number, thread.call.args);
  } else if (info.op == 2 && thread.inside) {
    thread.inside = false;
    thread.call.result = info.exit.result;
    watch_.exit(thread.call);
  }
}

std::size_t Tracer::alive() const {
  return static_cast<std::size_t>(std::ranges::count_if(threads_, [](const auto& t) { return t.second.role == Role::command; }));
}

void Tracer::resume(pid_t tid, int signal) {
  const Role role = threads_[tid].role;
  if (++stops_ % kSampleEvery == 0) watch_.sample(peak_);
  // ESRCH: killed meanwhile; its end follows.
  trace(role == Role::command ? PTRACE_SYSCALL : PTRACE_CONT, tid, 0, static_cast<unsigned long>(signal));
}

// A thread must be stopped to be let go.
void Tracer::detach_all() {
  for (const auto& [tid, thread] : threads_) {
    if (trace(PTRACE_DETACH, tid, 0, 0) == 0) continue;
    if (trace(PTRACE_INTERRUPT, tid, 0, 0) != 0) continue;
    int status = 0;
    if (::waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status)) {
      const int signal = status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80) ? WSTOPSIG(status) : 0;
      trace(PTRACE_DETACH, tid, 0, static_cast<unsigned long>(signal));
    }
  }
  threads_.clear();
}

}  // namespace caisson::cli::learn
