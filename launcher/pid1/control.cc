#include "launcher/pid1/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace caisson {

Result<Fd> serve_control(const std::string& path, session::Operations& operations, Loop& loop) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path)
    return fail(Code::invalid_argument, "path of the control socket is too long: " + quote(path));
  std::strcpy(address.sun_path, path.c_str());
  (void)::unlink(path.c_str());  // of an earlier launcher; the directory is ours alone
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return sys_error("control socket");
  const mode_t before = ::umask(0177);
  const bool bound = ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::listen(listener.get(), 16) == 0;
  ::umask(before);
  if (!bound) return sys_error("bind " + quote(path));
  const int fd = listener.get();
  TRY(loop.watch(fd, EPOLLIN, [fd, &operations, &loop](std::uint32_t) {
    for (;;) {
      Fd peer(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer && errno != EAGAIN && loop.rewatch(fd, 0))  // no descriptor is free, and it would be ready all the time
        loop.after(100'000, [fd, &loop] { (void)loop.rewatch(fd, EPOLLIN); });
      if (!peer) return;
      ucred who{};
      socklen_t size = sizeof who;
      if (::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != 0) continue;
      operations.serve(std::move(peer), session::Operations::Role::operator_, [&operations](const std::string& violation) {
        if (!violation.empty()) operations.record(audit::Event::client_violation, {{"client", "control"}, {"what", violation}});
      });
    }
  }));
  return listener;
}

}  // namespace caisson
