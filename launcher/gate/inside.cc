#include "launcher/gate/inside.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kDeadlineUs = 8'000'000;
constexpr timeval kConnect{.tv_sec = 5, .tv_usec = 0};

int work(int user_ns, int net_ns, std::uint16_t port, int& socket) {
  if (::setns(user_ns, CLONE_NEWUSER) != 0 || ::setns(net_ns, CLONE_NEWNET) != 0) return errno;
  socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kConnect, sizeof kConnect) != 0) return errno;
  const sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return 0;
  return errno == EINPROGRESS ? ETIMEDOUT : errno;
}

[[noreturn]] void child(int answer, int user_ns, int net_ns, std::uint16_t port) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int socket = -1;
  const int error = work(user_ns, net_ns, port, socket);
  ::_exit(scm::send(answer, &error, sizeof error, &socket, error == 0 ? 1 : 0) == static_cast<ssize_t>(sizeof error) ? 0 : 1);
}

}  // namespace

void connect_inside(Loop& loop, const Fd& user_ns, const Fd& net_ns, std::uint16_t port,
                    std::function<void(Fd, int error)> done) {
  auto pair = sys::seqpacket_pair();
  const pid_t pid = pair ? ::fork() : -1;
  if (pid == 0) child(pair->second.get(), user_ns.get(), net_ns.get(), port);
  if (pid < 0) return done(Fd(), EAGAIN);
  pair->second.reset();
  const auto socket = std::make_shared<Fd>(std::move(pair->first));
  const auto late = loop.after(kDeadlineUs, [pid] { ::kill(pid, SIGKILL); });  // ours, and not reaped before this is cancelled
  loop.on_exit(pid, [&loop, socket, late, done = std::move(done)](const ChildExit&) {
    loop.cancel(late);
    int error = EIO;
    const scm::Received came = scm::receive(socket->get(), &error, sizeof error, MSG_DONTWAIT);
    Fd made(came.count == 1 ? came.fds[0] : -1);
    if (came.size != static_cast<ssize_t>(sizeof error) || (error == 0 && !made)) error = EIO;
    done(std::move(made), error);
  });
}

}  // namespace caisson::gate
