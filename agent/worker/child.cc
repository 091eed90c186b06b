#include "agent/worker/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "launcher/common/base/sys.h"

namespace caisson::worker {
namespace {

constexpr rlim_t kCpuSeconds = 120;
constexpr std::size_t kMostErrors = 4096;
constexpr int kLookMs = 100;

// The process. It is killed and reaped however its request ends.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { (void)end(); }
  void kill() { ::kill(pid_, SIGKILL); }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  int end() {
    if (pid_ < 0) return 0;
    kill();
    return wait();
  }
  pid_t pid_;
};

// Only async-signal-safe calls: the process has threads. Exits with 127, and errno in `report`, when the program cannot be
// executed.
[[noreturn]] void become(char* const* argv, int input, int directory, int output, int errors, int report) {
  const rlimit cpu{kCpuSeconds, kCpuSeconds + 1};
  const bool ready = ::dup2(input, 0) >= 0 && ::dup2(output, 1) >= 0 && ::dup2(errors, 2) >= 0 &&
                     (directory < 0 || ::fchdir(directory) == 0) && ::setrlimit(RLIMIT_CPU, &cpu) == 0;
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  if (ready) ::execvp(argv[0], argv);
  const int why = errno;
  (void)!::write(report, &why, sizeof why);
  ::_exit(127);
}

// Appends the available bytes to `out`; false at the end of the stream.
bool take(const Fd& from, std::string& out, std::size_t most) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  out.append(buffer.data(), std::min(static_cast<std::size_t>(n), most - std::min(most, out.size())));
  return n > 0;
}

}  // namespace

std::string own_directory() {
  std::array<char, 4096> self;
  const ssize_t n = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string path(self.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

Done<ChildEnd> run_child(const ChildRequest& child, const Request& request, const std::function<bool(std::string_view)>& line) {
  auto out = sys::pipe(), err = sys::pipe(), report = sys::pipe();
  auto null = sys::open("/dev/null", O_RDONLY);
  if (!out || !err || !report || !null) return failed(EMFILE, child.argv[0]);
  std::vector<char*> argv;
  for (const std::string& word : child.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int input = child.input != nullptr ? child.input->get() : null->get();
  const int directory = child.directory != nullptr ? child.directory->get() : -1;
  const pid_t pid = ::fork();
  if (pid < 0) return failed(errno, child.argv[0]);
  if (pid == 0) become(argv.data(), input, directory, out->second.get(), err->second.get(), report->second.get());
  Process process(pid);
  out->second.reset();
  err->second.reset();
  report->second.reset();
  int why = 0;
  if (::read(report->first.get(), &why, sizeof why) == sizeof why)
    return refused("io_error", child.argv[0], child.argv[0] + " cannot be started in the file session", why);

  ChildEnd end;
  const std::int64_t deadline = sys::monotonic_us() + static_cast<std::int64_t>(child.seconds * 1e6);
  std::string text;
  std::array<pollfd, 2> polls = {pollfd{out->first.get(), POLLIN, 0}, pollfd{err->first.get(), POLLIN, 0}};
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    if (request.stopped()) return failed(ECANCELED, child.argv[0]);
    if (sys::monotonic_us() > deadline) end.stopped = true;
    if (end.stopped) break;
    if (::poll(polls.data(), polls.size(), kLookMs) <= 0) continue;
    if (polls[1].revents != 0 && !take(err->first, end.errors, kMostErrors)) polls[1].fd = -1;
    if (polls[0].revents == 0) continue;
    if (!take(out->first, text, std::string::npos)) polls[0].fd = -1;
    std::size_t from = 0;
    for (std::size_t at = text.find('\n'); at != std::string::npos && !end.stopped; at = text.find('\n', from)) {
      end.stopped = !line(std::string_view(text).substr(from, at - from));
      from = at + 1;
    }
    text.erase(0, from);
    if (text.size() > child.line_bytes) end.stopped = true;
  }
  if (end.stopped) process.kill();
  else if (!text.empty()) end.stopped = !line(text);
  end.exit_code = process.wait();
  return end;
}

}  // namespace caisson::worker
