// The probes of `caisson policy test`, made inside the session: this program is executed as its first process, in place of
// caisson-init, by descriptor and behind every wall. Each probe is a child of its own with ten seconds to live. The program that
// asks (policy_test.cc) does not trust it: the walls decide what it can claim.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "launcher/cli/policy_files.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/wire/init_protocol.h"

namespace caisson::cli {
namespace {

constexpr int kProbeSeconds = 10, kConnectMs = 3000;

Finding worked(std::string detail = {}) { return {Outcome::worked, 0, std::move(detail)}; }
Finding refused(int error = errno, std::string detail = {}) { return {Outcome::refused, error, std::move(detail)}; }
Finding undecided(std::string detail, int error = 0) { return {Outcome::failed, error, std::move(detail)}; }

Finding try_read(const std::string& path) {
  const auto fd = sys::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return refused(fd.error().sys);
  char byte = 0;
  if (::read(fd->get(), &byte, 1) >= 0 || errno == EAGAIN) return worked();
  if (errno != EISDIR) return refused();
  DIR* entries = ::opendir(path.c_str());
  if (entries == nullptr) return refused();
  ::closedir(entries);
  return worked("a directory");
}

// Leaves nothing: a file that was not there is removed, one that was is opened and not touched.
Finding try_write(const std::string& path) {
  struct stat st{};
  const bool there = ::stat(path.c_str(), &st) == 0;
  const bool directory = there && S_ISDIR(st.st_mode);
  const std::string target = directory ? path + "/.caisson-policy-test-" + sys::random_hex(4) : path;
  const bool make = directory || !there;
  const auto fd = sys::open(target, O_WRONLY | O_NONBLOCK | O_NOCTTY | (make ? O_CREAT | O_EXCL : 0), 0600);
  if (!fd) return refused(fd.error().sys);
  if (make) (void)::unlink(target.c_str());
  return worked();
}

Finding try_see(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 ? worked() : refused();
}

Finding try_run(const std::vector<std::string>& words, const json::Value& environment) {
  std::vector<std::string> env;
  std::string search = "/usr/bin";
  for (const auto& [name, value] : environment.items()) {
    env.push_back(name + "=" + value.get<std::string>());
    if (name == "PATH") search = value.get<std::string>();
  }
  std::vector<char*> argv, envp;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& pair : env) envp.push_back(const_cast<char*>(pair.c_str()));
  argv.push_back(nullptr), envp.push_back(nullptr);
  auto pipe = sys::pipe();
  if (!pipe) return undecided("no pipe", pipe.error().sys);
  const pid_t child = ::fork();
  if (child < 0) return undecided("no process", errno);
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::setenv("PATH", search.c_str(), 1);
    ::execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    (void)!::write(pipe->second.get(), &error, sizeof error);
    ::_exit(127);
  }
  pipe->second = Fd();
  int error = 0;
  const bool not_started = ::read(pipe->first.get(), &error, sizeof error) == sizeof error;
  const int status = sys::reap(child);
  if (not_started) return refused(error);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return worked();
  return undecided(WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                       : "ran, exit status " + std::to_string(WEXITSTATUS(status)));
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  bool loopback = false;
};

// "1.2.3.4:5" or "[::1]:5".
std::optional<Address> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port > 65535) return std::nullopt;
  Address out;
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    out.size = sizeof *v6;
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) != 1) return std::nullopt;
    out.loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    return out;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(static_cast<std::uint16_t>(port));
  out.size = sizeof *v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) return std::nullopt;
  out.loopback = (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  return out;
}

// A packet never left this kernel. A refusal by a peer, or silence, means that something was sent.
bool stayed_inside(int error, bool loopback) {
  return error == ENETUNREACH || error == EPERM || error == EACCES || error == EAFNOSUPPORT || error == ENOSYS ||
         (loopback && error == ECONNREFUSED);
}

Finding connect_to(const Address& to) {
  const Fd fd(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return stayed_inside(errno, to.loopback) ? refused() : undecided("no socket", errno);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0) return worked();
  int error = errno;
  if (error == EINPROGRESS) {
    pollfd wait{fd.get(), POLLOUT, 0};
    if (::poll(&wait, 1, kConnectMs) != 1) return undecided("no answer within 3 s: it was sent", ETIMEDOUT);
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return undecided("no result", errno);
    if (error == 0) return worked();
  }
  return stayed_inside(error, to.loopback) ? refused(error) : undecided("it left the session", error);
}

// Serves, and reaches what it serves.
Finding try_listen(Address at) {
  const Fd fd(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return refused();
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) != 0 || ::listen(fd.get(), 1) != 0)
    return refused();
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.size) != 0) return undecided("no name", errno);
  return connect_to(at);
}

Finding try_network(const Expectation& e) {
  const auto address = parse_address(e.object);
  if (!address) return undecided("must be ADDRESS:PORT or [ADDRESS]:PORT, an address and no name");
  return e.verb == "listen" ? try_listen(*address) : connect_to(*address);
}

Finding try_call(const Expectation& e) {
  const int number = ::seccomp_syscall_resolve_name(e.object.c_str());
  if (number == __NR_SCMP_ERROR) return undecided("no system call has this name");
  if (number < 0) return refused(ENOSYS, "this machine has no such call");
  std::uint64_t a[6] = {};
  std::copy(e.args.begin(), e.args.end(), a);
  const pid_t self = ::getpid();
  errno = 0;
  const long result = ::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const int error = errno;
  if (::getpid() != self) ::_exit(0);  // it was a fork
  // Anything else comes from the kernel behind the filter: the call was let in.
  if (result == -1 && (error == EPERM || error == ENOSYS)) return refused(error);
  return worked(result == -1 ? errno_name(error) : "returned " + std::to_string(result));
}

rlim_t hard_limit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : 0;
}

Finding exceed_tmp(std::uint64_t limit) {
  const Fd fd(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return undecided("/dev/shm cannot be written", errno);
  ::signal(SIGXFSZ, SIG_IGN);
  // tmpfs refuses a size beyond its own before it takes a page.
  if (::fallocate(fd.get(), 0, 0, static_cast<off_t>(limit + 4096)) == 0) return worked();
  if (errno != EFBIG) return refused();
  // One file may not be that large: then what the file system holds at all decides.
  struct statvfs fs{};
  if (::fstatvfs(fd.get(), &fs) != 0) return undecided("no size of /dev/shm", errno);
  const std::uint64_t size = fs.f_blocks * fs.f_frsize;
  return size != 0 && size <= limit ? refused(ENOSPC, std::to_string(size) + " bytes") : worked("no limit of the file system");
}

Finding try_exceed(const std::string& limit, std::uint64_t value) {
  if (limit == "cpu_seconds") {
    const rlim_t now = hard_limit(RLIMIT_CPU);
    return now <= value ? refused(EPERM, "the kernel's limit is " + std::to_string(now)) : worked("no limit of the kernel");
  }
  if (limit == "open_files") {
    std::uint64_t open = 0;
    while (open <= value && ::dup(0) >= 0) ++open;
    return open <= value ? refused() : worked();
  }
  if (limit == "file_size_bytes") {
    ::signal(SIGXFSZ, SIG_IGN);
    const Fd fd(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd) return undecided("/dev/shm cannot be written", errno);
    return ::pwrite(fd.get(), "x", 1, static_cast<off_t>(value)) == 1 ? worked() : refused();
  }
  return exceed_tmp(value);
}

// One request, in a child that may be killed by what it tries.
Finding in_child(const Expectation& e, const json::Value& request) {
  auto pipe = sys::pipe();
  if (!pipe) return undecided("no pipe", pipe.error().sys);
  const pid_t child = ::fork();
  if (child < 0) return undecided("no process", errno);
  if (child == 0) {
    ::alarm(kProbeSeconds);
    const Finding f = e.verb == "exceed" ? try_exceed(e.object, request.value("limit_value", std::uint64_t{0}))
                                         : probe(e, request.value("env", json::Value::object()));
    const json::Value answer{{"outcome", static_cast<unsigned>(f.outcome)}, {"errno", f.error}, {"detail", f.detail}};
    (void)sys::write_all(pipe->second.get(), json::dump(answer));
    ::_exit(0);
  }
  pipe->second = Fd();
  std::string text(4096, '\0');
  const ssize_t n = ::read(pipe->first.get(), text.data(), text.size());
  const int status = sys::reap(child);
  // The first process of a session inherits what the probe left behind.
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  const auto answer = json::parse(std::string_view(text).substr(0, static_cast<std::size_t>(std::max<ssize_t>(n, 0))));
  if (answer)
    return {static_cast<Outcome>((*answer)["outcome"].get<unsigned>()), (*answer)["errno"].get<int>(),
            (*answer)["detail"].get<std::string>()};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) return refused(ENOSYS, "killed by SIGSYS");
  return undecided(WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status)) : "no answer");
}

}  // namespace

Finding probe(const Expectation& e, const json::Value& environment) {
  if (e.verb == "read") return try_read(e.object);
  if (e.verb == "write") return try_write(e.object);
  if (e.verb == "see") return try_see(e.object);
  if (e.verb == "run") return try_run(e.argv, environment);
  if (e.verb == "call") return try_call(e);
  return try_network(e);
}

void serve_probes() {
  ::signal(SIGPIPE, SIG_IGN);
  std::string text(kMaxProbeMessage, '\0');
  for (;;) {
    const ssize_t n = ::recv(init::kSocketFd, text.data(), text.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(0);  // the program that asks is gone
    const auto request = json::parse(std::string_view(text).substr(0, static_cast<std::size_t>(n)));
    Finding f = undecided("not understood");
    if (request && request->is_object() && request->contains("expect")) {
      if (const auto e = expectation_from((*request)["expect"])) {
        ::umask(static_cast<mode_t>(request->value("umask", 022U)));
        if (::chdir(request->value("cwd", "/").c_str()) == 0) f = in_child(*e, *request);
        else f = undecided("no working directory", errno);
      }
    }
    const std::string answer =
        json::dump({{"outcome", static_cast<unsigned>(f.outcome)}, {"errno", f.error}, {"detail", f.detail}});
    if (::send(init::kSocketFd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) ::_exit(1);
  }
}

}  // namespace caisson::cli
