#include "launcher/gate/enter.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/build/net.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kDeadlineUs = 5'000'000;

struct Outcome {
  capture::Step step = capture::Step::none;
  int error = 0;
};

Outcome work(int user_ns, int net_ns, Entered& made) {
  Outcome out{capture::Step::user_ns};
  if (::setns(user_ns, CLONE_NEWUSER) != 0) return {out.step, errno};
  out.step = capture::Step::net_ns;
  if (net_ns >= 0 ? ::setns(net_ns, CLONE_NEWNET) != 0 : ::unshare(CLONE_NEWNET) != 0) return {out.step, errno};
  if (const int error = confine::loopback_up(); error != 0) return {out.step, error};
  auto own = sys::open("/proc/self/ns/net", O_RDONLY);
  if (!own) return {out.step, own.error().sys};
  made.net_ns = std::move(*own);
  auto sockets = capture::open(out.step);
  if (!sockets) return {out.step, sockets.error().sys != 0 ? sockets.error().sys : EIO};
  made.sockets = std::move(*sockets);
  return {};
}

[[noreturn]] void child(int answer, int user_ns, int net_ns) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Entered made;
  const Outcome out = work(user_ns, net_ns, made);
  const int fds[] = {made.net_ns.get(), made.sockets.tcp4.get(), made.sockets.tcp6.get(), made.sockets.names.get(),
                     made.sockets.owners.get()};
  const std::size_t count = out.error == 0 ? std::size(fds) - (made.sockets.owners ? 0 : 1) : 0;
  ::_exit(scm::send(answer, &out, sizeof out, fds, count) == static_cast<ssize_t>(sizeof out) ? 0 : 1);
}

Entered heard(const Fd& socket) {
  Outcome out;
  const scm::Received came = scm::receive(socket.get(), &out, sizeof out, MSG_DONTWAIT);
  Entered made;
  Fd* const into[] = {&made.net_ns, &made.sockets.tcp4, &made.sockets.tcp6, &made.sockets.names, &made.sockets.owners};
  for (std::size_t i = 0; i < came.count; ++i)
    if (Fd fd(came.fds[i]); i < std::size(into)) *into[i] = std::move(fd);
  if (came.size != static_cast<ssize_t>(sizeof out)) made.error = EIO, made.what = "the child that enters it ended";
  else if (out.error != 0)
    made.error = out.error, made.what = "step " + std::string(word(words(out.step), static_cast<std::size_t>(out.step)));
  else if (!made.sockets.names) made.error = EIO, made.what = "too few descriptors came";
  return made;
}

}  // namespace

void enter(Loop& loop, const Fd& user_ns, const Fd& net_ns, Done done) {
  auto pair = sys::seqpacket_pair();
  const pid_t pid = pair ? ::fork() : -1;
  if (pid == 0) child(pair->second.get(), user_ns.get(), net_ns.get());
  if (pid < 0) {
    Entered none;
    none.error = errno, none.what = "fork";
    return done(std::move(none));
  }
  pair->second.reset();
  // Its end is what is waited for: it sends before that, and is over then.
  const auto socket = std::make_shared<Fd>(std::move(pair->first));
  const auto late = loop.after(kDeadlineUs, [pid] { ::kill(pid, SIGKILL); });  // ours, and not reaped before this is cancelled
  loop.on_exit(pid, [&loop, socket, late, done = std::move(done)](const ChildExit&) {
    loop.cancel(late);
    done(heard(*socket));
  });
}

}  // namespace caisson::gate
