// caisson-starter: the first program of a session for /run_code (agent/services/code/run_code.h). It writes the files of its job,
// lowers its own memory limits, and executes the program. The job is one frame on stdin (agent/frames). It reads no byte after
// the frame: the rest is the program's own input. It has only the rights of the session. A file that it cannot write is reported
// on stderr, after the job's nonce (agent/services/code/code_report.h).
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "agent/worker/paths.h"
#include "launcher/common/base/sys.h"

namespace caisson::worker {
namespace {

constexpr frames::Limits kAccepted{.head_bytes = 1024 * 1024, .body_bytes = 48 * 1024 * 1024, .head_values = 64 * 1024};
constexpr int kCannotRun = 126, kNoProgram = 127;  // as shells report it

// Ends the process if stdin closes before a job arrives.
Request read_job() {
  frames::Decoder decoder(kAccepted);
  std::string bytes(64 * 1024, '\0');
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), std::min(bytes.size(), decoder.wanted()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(0);
    std::string_view came = std::string_view(bytes).substr(0, static_cast<std::size_t>(n));
    auto frame = decoder.take(came);
    if (!frame) ::_exit(1);
    if (*frame) return {.head = std::move((*frame)->head), .body = std::move((*frame)->body)};
  }
}

Done<void> write_one(const std::string& name, std::string_view bytes, const std::string& dir) {
  TRY_ASSIGN(const std::string path, absolute(name.starts_with('/') || name.empty() ? name : dir + "/" + name));
  TRY_ASSIGN(const Opened file, open_for_writing(path, O_WRONLY));
  return overwrite(file.fd, path, bytes);
}

Done<void> place(const Request& job) {
  const std::string dir = job.text("cwd");
  if ((::mkdir(dir.c_str(), 0777) != 0 && errno != EEXIST) || ::chdir(dir.c_str()) != 0) return failed(errno, dir);
  std::string_view rest = job.body;
  const auto files = job.head.find("files");
  if (files == job.head.end() || !files->is_array()) return {};
  for (const json::Value& one : *files) {
    const Request file{.head = one, .body = ""};
    const auto size = std::min(rest.size(), static_cast<std::size_t>(file.number("bytes").value_or(0)));
    TRY(write_one(file.text("path"), rest.substr(0, size), dir));
    rest.remove_prefix(size);
  }
  return {};
}

// Sets the soft limit, at most to the hard one.
void bound(__rlimit_resource what, rlim_t soft) {
  rlimit limit{};
  (void)::getrlimit(what, &limit);
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  (void)::setrlimit(what, &limit);
}

// An allocation beyond these limits fails at once; the watchdog looks only twice a second. The stack's soft limit becomes its
// hard one: any smaller figure would also be the stack size of each thread (pthread_create(3)).
void bound_memory(rlim_t bytes) {
  bound(RLIMIT_AS, bytes);
  bound(RLIMIT_DATA, bytes);
  bound(RLIMIT_STACK, RLIM_INFINITY);
}

[[noreturn]] void refuse(const Request& job, const Failure& why) {
  const std::string text = why.path + ": " + (why.text.empty() ? std::strerror(why.number) : why.text);
  const std::string report = json::dump({{"refused", text}});
  (void)sys::write_all(STDERR_FILENO, "\x1e" + job.text("nonce") + " " + std::to_string(report.size()) + "\n" + report);
  ::_exit(1);
}

[[noreturn]] void become(const Request& job) {
  std::vector<std::string> words = job.texts("argv");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (!words.empty()) (void)::execvp(argv[0], argv.data());
  const int error = words.empty() ? ENOENT : errno;
  std::fprintf(stderr, "%s: %s\n", words.empty() ? "no program" : argv[0], std::strerror(error));
  ::_exit(error == ENOENT ? kNoProgram : kCannotRun);
}

}  // namespace
}  // namespace caisson::worker

int main() {
  using namespace caisson::worker;
  ::signal(SIGXFSZ, SIG_IGN);  // writing beyond the limit of a file's size is EFBIG
  const Request job = read_job();
  if (const auto placed = place(job); !placed) refuse(job, placed.error());
  ::signal(SIGXFSZ, SIG_DFL);
  if (const auto bytes = job.number("memory")) bound_memory(static_cast<rlim_t>(*bytes));
  become(job);
}
