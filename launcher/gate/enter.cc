#include "launcher/gate/enter.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/build/net.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kDeadlineUs = 5'000'000;

// A child's answer: an Outcome with the sockets of all ports, then messages with those of some, each with its port.
struct Outcome {
  capture::Step step = capture::Step::none;
  int error = 0;
  int without = 0;  // errno: there are no rules
};
using Numbers = std::array<std::uint16_t, scm::kMaxFds>;

struct Work {
  int user_ns, net_ns;
  bool again;
  std::span<const std::uint16_t> ports;
};

Outcome failed(capture::Step step, const Error& error) { return {step, error.sys != 0 ? error.sys : EIO}; }

Outcome work(const Work& of, Entered& made) {
  Outcome out{capture::Step::user_ns};
  if (::setns(of.user_ns, CLONE_NEWUSER) != 0) return {out.step, errno};
  out.step = capture::Step::net_ns;
  if (of.net_ns >= 0 ? ::setns(of.net_ns, CLONE_NEWNET) != 0 : ::unshare(CLONE_NEWNET) != 0) return {out.step, errno};
  if (of.again) {
    auto more = capture::listen_at(of.ports);
    if (!more) return failed(capture::Step::listeners, more.error());
    made.sockets.ports = std::move(*more);
    return {};
  }
  if (const int error = confine::loopback_up(); error != 0) return {out.step, error};
  auto own = sys::open("/proc/self/ns/net", O_RDONLY);
  if (!own) return {out.step, own.error().sys};
  made.net_ns = std::move(*own);
  auto sockets = capture::open(out.step);
  const int error = sockets ? 0 : sockets.error().sys;
  const bool without = capture::without_rules(out.step, error);
  if (without) sockets = capture::open_ports(out.step, of.ports);
  if (!sockets) return failed(out.step, sockets.error());
  made.sockets = std::move(*sockets);
  return {.without = without ? error : 0};
}

bool tell(int to, const Outcome& out, const Entered& made) {
  const capture::Sockets& all = made.sockets;
  const int fds[] = {made.net_ns.get(), all.tcp4.get(), all.tcp6.get(), all.names.get(), all.owners.get()};
  const std::size_t count = out.error != 0 || !all.names ? 0 : std::size(fds) - (all.owners ? 0 : 1);
  if (scm::send(to, &out, sizeof out, fds, count) != static_cast<ssize_t>(sizeof out)) return false;
  for (std::size_t first = 0; first < all.ports.size(); first += scm::kMaxFds) {
    Numbers numbers{};
    int some[scm::kMaxFds];
    const std::size_t size = std::min(all.ports.size() - first, scm::kMaxFds);
    for (std::size_t i = 0; i < size; ++i) numbers[i] = all.ports[first + i].port, some[i] = all.ports[first + i].socket.get();
    if (scm::send(to, numbers.data(), sizeof numbers, some, size) != static_cast<ssize_t>(sizeof numbers)) return false;
  }
  return true;
}

[[noreturn]] void child(int answer, const Work& of) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Entered made;
  const Outcome out = work(of, made);
  ::_exit(tell(answer, out, made) ? 0 : 1);
}

// Its last message was sent before it ended.
void hear_ports(const Fd& socket, Entered& made) {
  Numbers numbers{};
  for (;;) {
    const scm::Received came = scm::receive(socket.get(), numbers.data(), sizeof numbers, MSG_DONTWAIT);
    std::array<Fd, scm::kMaxFds> fds;
    for (std::size_t i = 0; i < came.count; ++i) fds[i] = Fd(came.fds[i]);
    if (came.size != static_cast<ssize_t>(sizeof numbers) || came.cut()) return;
    for (std::size_t i = 0; i < came.count; ++i) made.sockets.ports.push_back({numbers[i], std::move(fds[i])});
  }
}

Entered heard(const Fd& socket, bool again) {
  Outcome out;
  const scm::Received came = scm::receive(socket.get(), &out, sizeof out, MSG_DONTWAIT);
  Entered made;
  Fd* const into[] = {&made.net_ns, &made.sockets.tcp4, &made.sockets.tcp6, &made.sockets.names, &made.sockets.owners};
  for (std::size_t i = 0; i < came.count; ++i)
    if (Fd fd(came.fds[i]); i < std::size(into)) *into[i] = std::move(fd);
  if (came.size != static_cast<ssize_t>(sizeof out)) made.error = EIO, made.what = "the child that enters it ended";
  else if (out.error != 0)
    made.error = out.error, made.what = "step " + std::string(word(words(out.step), static_cast<std::size_t>(out.step)));
  else if (!again && !made.sockets.names) made.error = EIO, made.what = "too few descriptors came";
  if (out.without != 0) made.without = errno_name(out.without);
  if (made.error == 0) hear_ports(socket, made);
  return made;
}

void run(Loop& loop, const Work& of, Done done) {
  auto pair = sys::seqpacket_pair();
  const pid_t pid = pair ? ::fork() : -1;
  if (pid == 0) child(pair->second.get(), of);
  if (pid < 0) {
    Entered none;
    none.error = errno, none.what = "fork";
    return done(std::move(none));
  }
  pair->second.reset();
  // Its end is what is waited for: it sends before that, and is over then.
  const auto socket = std::make_shared<Fd>(std::move(pair->first));
  const auto late = loop.after(kDeadlineUs, [pid] { ::kill(pid, SIGKILL); });  // ours, and not reaped before this is cancelled
  loop.on_exit(pid, [&loop, socket, late, again = of.again, done = std::move(done)](const ChildExit&) {
    loop.cancel(late);
    done(heard(*socket, again));
  });
}

}  // namespace

void enter(Loop& loop, const Fd& user_ns, const Fd& net_ns, const std::vector<std::uint16_t>& ports, Done done) {
  run(loop, {user_ns.get(), net_ns.get(), false, ports}, std::move(done));
}

void enter_again(Loop& loop, const Fd& user_ns, const Fd& net_ns, const std::vector<std::uint16_t>& ports, Done done) {
  run(loop, {user_ns.get(), net_ns.get(), true, ports}, std::move(done));
}

}  // namespace caisson::gate
