#include "agent/cdp/browser.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "agent/cdp/confined.h"
#include "launcher/common/base/sys.h"

namespace caisson::cdp {
namespace {

constexpr int kPipeBytes = 1024 * 1024;  // fewer turns for a large message; not fatal where it is refused

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// Ours without the names that are given, and these.
std::vector<std::string> environment_of(const std::vector<std::string>& given) {
  std::vector<std::string> out = given;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('=') + 1);
    bool replaced = false;
    for (const std::string& one : given) replaced |= one.starts_with(name);
    if (!replaced) out.emplace_back(*entry);
  }
  return out;
}

struct Ends {
  int null, in, out, err, failed;  // each above 4
};

// Between fork and execve: no allocation, no lock.
[[noreturn]] void become(char* const* argv, char* const* environment, const Ends& ends, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::signal(SIGPIPE, SIG_DFL);
  (void)::setsid();
  const int wanted[] = {ends.null, ends.err, ends.err, ends.in, ends.out};
  for (int fd = 0; fd < 5; ++fd)
    if (::dup2(wanted[fd], fd) < 0) ::_exit(127);
  if (::close_range(5, ~0U, CLOSE_RANGE_CLOEXEC) != 0) ::_exit(127);
  // It would outlive us, unconfirmed and unreachable.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(127);
  ::execve(argv[0], argv, environment);
  const int error = errno;
  (void)!::write(ends.failed, &error, sizeof error);
  ::_exit(127);
}

// A descriptor above those that Chromium is given.
Result<Fd> lifted(const Fd& fd) {
  Fd out(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
  if (!out) return sys_error("duplicate a descriptor");
  return out;
}

}  // namespace

Browser::~Browser() {
  loop_.cancel(timer_);
  if (said_) loop_.unwatch(said_.get());
  if (pid_ > 0) {
    loop_.forget_exit(pid_);
    (void)::kill(pid_, SIGKILL);
  }
}

Result<Browser::Pipes> Browser::start(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
  TRY_ASSIGN(auto to, sys::pipe());
  TRY_ASSIGN(auto from, sys::pipe());
  TRY_ASSIGN(auto said, sys::pipe());
  TRY_ASSIGN(auto failed, sys::pipe());
  TRY_ASSIGN(const Fd null_device, sys::open("/dev/null", O_RDONLY));
  for (const Fd* end : {&to.first, &from.first}) (void)::fcntl(end->get(), F_SETPIPE_SZ, kPipeBytes);
  TRY_ASSIGN(const Fd null, lifted(null_device));
  TRY_ASSIGN(const Fd in, lifted(to.first));
  TRY_ASSIGN(const Fd out, lifted(from.second));
  TRY_ASSIGN(const Fd err, lifted(said.second));
  TRY_ASSIGN(Fd failure, lifted(failed.second));
  TRY(sys::set_nonblocking(said.first.get(), true));

  std::vector<std::string> words = argv, variables = environment_of(environment);
  const std::vector<char*> argv_pointers = pointers(words), environment_pointers = pointers(variables);
  const Ends ends{null.get(), in.get(), out.get(), err.get(), failure.get()};
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return sys_error("fork");
  if (child == 0) become(argv_pointers.data(), environment_pointers.data(), ends, parent);
  failure.reset();
  failed.second.reset();
  int error = 0;
  if (::read(failed.first.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error)) {
    (void)sys::reap(child);
    return sys_error("execute " + quote(argv[0]), error);
  }
  pid_ = child;
  why_.clear();
  said_text_.clear();
  said_ = std::move(said.first);
  loop_.on_exit(child, [this](const ChildExit& exit) { on_exit(exit); });
  TRY(loop_.watch(said_.get(), EPOLLIN, [this](std::uint32_t) { read_said(); }));
  return Pipes{std::move(to.second), std::move(from.first)};
}

void Browser::read_said() {
  char bytes[4096];
  const ssize_t n = ::read(said_.get(), bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    loop_.unwatch(said_.get());
    return said_.reset();
  }
  said_text_.append(bytes, static_cast<std::size_t>(n));
  if (said_text_.size() > kSaidBytes) said_text_.erase(0, said_text_.size() - kSaidBytes);
}

void Browser::expect_end(const std::string& why) {
  if (pid_ <= 0 || timer_ != 0) return;
  if (why_.empty()) why_ = why;
  timer_ = loop_.after(kCloseUs, [this] { kill("it did not end when it should"); });
}

void Browser::kill(const std::string& why) {
  if (pid_ <= 0) return;
  if (why_.empty()) why_ = why;
  (void)::kill(pid_, SIGKILL);
}

// Its other processes are ours now. One that is in a PID namespace of its own ends with the first process of that.
void Browser::on_exit(const ChildExit& exit) {
  loop_.cancel(std::exchange(timer_, 0));
  pid_ = 0;
  for (const Process& left : descendants(::getpid())) (void)::kill(left.pid, SIGKILL);
  if (said_) read_said();
  if (said_) loop_.unwatch(said_.get());
  said_.reset();
  ended_({exit, std::exchange(why_, ""), std::exchange(said_text_, "")});
}

Status prepare_profile(const std::string& profile) {
  if (::mkdir(profile.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("make folder " + quote(profile));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(profile.c_str()), ::closedir);
  if (folder == nullptr) return sys_error("open folder " + quote(profile));
  while (const dirent* entry = ::readdir(folder.get())) {
    if (!std::string_view(entry->d_name).starts_with("Singleton")) continue;
    if (::unlinkat(::dirfd(folder.get()), entry->d_name, 0) != 0 && errno != ENOENT)
      return sys_error("remove " + quote(profile + "/" + entry->d_name));
  }
  return {};
}

}  // namespace caisson::cdp
