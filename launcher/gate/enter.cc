#include "launcher/gate/enter.h"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kDeadlineUs = 5'000'000;

struct Outcome {
  capture::Step step = capture::Step::none;
  int error = 0;
};

// Of the namespaces' own: entering those of the launcher would put its own connections behind the door.
Outcome work(int user_ns, int net_ns, bool shut, capture::Sockets& sockets) {
  Outcome out{capture::Step::user_ns};
  if (::setns(user_ns, CLONE_NEWUSER) != 0) return {out.step, errno};
  out.step = capture::Step::net_ns;
  if (::setns(net_ns, CLONE_NEWNET) != 0) return {out.step, errno};
  auto made = shut ? Result<capture::Sockets>() : capture::open(out.step);
  if (const Status gone = shut ? capture::shut(out.step) : Status(); !gone) made = std::unexpected(gone.error());
  if (!made) return {out.step, made.error().sys != 0 ? made.error().sys : EIO};
  sockets = std::move(*made);
  return {};
}

[[noreturn]] void child(int answer, int user_ns, int net_ns, bool shut) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  capture::Sockets sockets;
  const Outcome out = work(user_ns, net_ns, shut, sockets);
  const int fds[] = {sockets.tcp4.get(), sockets.tcp6.get(), sockets.names.get()};
  const std::size_t count = out.error == 0 && !shut ? std::size(fds) : 0;
  ::_exit(scm::send(answer, &out, sizeof out, fds, count) == static_cast<ssize_t>(sizeof out) ? 0 : 1);
}

Entered heard(const Fd& socket, bool shut) {
  Outcome out;
  scm::Received came = scm::receive(socket.get(), &out, sizeof out, MSG_DONTWAIT);
  Entered entered;
  Fd* const into[] = {&entered.sockets.tcp4, &entered.sockets.tcp6, &entered.sockets.names};
  for (std::size_t i = 0; i < came.count; ++i)
    if (Fd fd(came.fds[i]); i < std::size(into)) *into[i] = std::move(fd);
  if (came.size != static_cast<ssize_t>(sizeof out)) entered.error = EIO, entered.what = "the child that enters it ended";
  else if (out.error != 0)
    entered.error = out.error, entered.what = "step " + std::string(word(words(out.step), static_cast<std::size_t>(out.step)));
  else if (!shut && !entered.sockets.names) entered.error = EIO, entered.what = "too few sockets came";
  return entered;
}

}  // namespace

void enter(Loop& loop, const Fd& user_ns, const Fd& net_ns, bool shut, Done done) {
  auto pair = sys::seqpacket_pair();
  const pid_t pid = pair ? ::fork() : -1;
  if (pid == 0) child(pair->second.get(), user_ns.get(), net_ns.get(), shut);
  if (pid < 0) return done({.error = errno, .what = "fork"});
  pair->second.reset();
  // Its end is what is waited for: it sends before that, and is over then.
  const auto socket = std::make_shared<Fd>(std::move(pair->first));
  const auto late = loop.after(kDeadlineUs, [pid] { ::kill(pid, SIGKILL); });  // ours: not reaped before `on_exit` below
  loop.on_exit(pid, [&loop, socket, late, shut, done = std::move(done)](const ChildExit&) {
    loop.cancel(late);
    done(heard(*socket, shut));
  });
}

}  // namespace caisson::gate
