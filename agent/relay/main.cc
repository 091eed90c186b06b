// caisson-relay PATH [--hello TEXT] [--note TEXT]: stdin and stdout joined to a UNIX socket of the session, for one client of the
// agent's: CDP (caisson-cdp) or RFB (Xvnc). The hello and a NUL are sent first; the note is for the audit log, which has the
// arguments of each program. It reads nothing of what passes. What one side does not take waits in the other side's pipe: two
// buffers of kBufferBytes are all that is held here. Exit status: 0 when either side has ended, 1 when the socket cannot be had.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/sys.h"

namespace caisson::relay {
namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr std::size_t kMaxHelloBytes = 4096;
// After the end of stdin, for what the peer has still to say. RFB servers end at once; caisson-cdp does, too.
constexpr int kLingerMs = 5'000;

// One direction. What was read is written before more is read.
struct Way {
  int from, to;
  std::unique_ptr<char[]> bytes = std::make_unique<char[]>(kBufferBytes);
  std::size_t begin = 0, end = 0;
  bool ended = false;   // nothing more comes
  bool broken = false;  // nothing more is taken

  [[nodiscard]] bool holds() const { return begin < end; }
  [[nodiscard]] bool reads() const { return !ended && !holds(); }

  void put(std::string_view text) { end = text.copy(bytes.get(), kBufferBytes); }
  void read() {
    const ssize_t n = ::read(from, bytes.get(), kBufferBytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    ended = n <= 0;
    begin = 0;
    end = ended ? 0 : static_cast<std::size_t>(n);
  }
  void write() {
    if (!holds()) return;
    const ssize_t n = ::write(to, bytes.get() + begin, end - begin);
    if (n > 0) begin += static_cast<std::size_t>(n);
    else if (errno != EAGAIN && errno != EINTR) broken = true;
  }
};

Result<Fd> connected(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(Code::invalid_argument, "path of the socket is empty or too long");
  path.copy(address.sun_path, path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return sys_error("create socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return sys_error("connect to " + quote(path));
  return socket;
}

void pass(int socket, Way& out, Way& in) {
  bool told = false;  // the peer, that nothing more comes
  while (!in.broken && !(in.ended && !in.holds())) {
    // The peer takes nothing more; what it has still to say is passed on.
    if (out.broken) out.ended = true, out.begin = out.end;
    if (out.ended && !out.holds() && !std::exchange(told, true)) (void)::shutdown(socket, SHUT_WR);
    const auto when = [](bool wanted, short events) { return static_cast<short>(wanted ? events : 0); };
    pollfd fds[] = {
        {.fd = out.reads() ? out.from : -1, .events = POLLIN, .revents = 0},
        // Not looked at while nothing can be done with it: that it was closed would be said again and again.
        {.fd = out.holds() || in.reads() ? socket : -1,
         .events = static_cast<short>(when(out.holds(), POLLOUT) | when(in.reads(), POLLIN)),
         .revents = 0},
        {.fd = in.to, .events = when(in.holds(), POLLOUT), .revents = 0},
    };
    const int ready = ::poll(fds, std::size(fds), out.ended ? kLingerMs : -1);
    if (ready == 0 || (ready < 0 && errno != EINTR)) return;
    if (ready < 0) continue;
    if ((fds[2].revents & (POLLERR | POLLHUP)) != 0) return;  // whoever read our stdout is gone
    if (fds[0].revents != 0) out.read();
    if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && in.reads()) in.read();
    out.write();
    in.write();
  }
}

Status relay(const std::string& path, std::string_view hello) {
  TRY_ASSIGN(const Fd socket, connected(path));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, socket.get()}) TRY(sys::set_nonblocking(fd, true));
  // A larger pipe needs fewer turns for large messages. The system may refuse it to an unprivileged user; not fatal.
  for (const int pipe : {STDIN_FILENO, STDOUT_FILENO}) (void)::fcntl(pipe, F_SETPIPE_SZ, 1024 * 1024);
  Way out{.from = STDIN_FILENO, .to = socket.get()}, in{.from = socket.get(), .to = STDOUT_FILENO};
  out.put(hello);
  pass(socket.get(), out, in);
  return {};
}

}  // namespace
}  // namespace caisson::relay

int main(int argc, char** argv) {
  std::string hello;
  bool valid = argc >= 2 && argc % 2 == 0;
  for (int i = 2; valid && i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--hello") hello.assign(argv[i + 1]).push_back('\0');
    valid = option == "--hello" || option == "--note";
  }
  if (!valid) {
    std::fprintf(stderr, "usage: caisson-relay PATH [--hello TEXT] [--note TEXT]\n");
    return 64;
  }
  if (hello.size() > caisson::relay::kMaxHelloBytes) {
    std::fprintf(stderr, "caisson-relay: the hello is too long\n");
    return 64;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const auto done = caisson::relay::relay(argv[1], hello);
  if (!done) std::fprintf(stderr, "caisson-relay: %s\n", done.error().text().c_str());
  return done ? 0 : 1;
}
