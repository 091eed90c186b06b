// caisson-connector: connects on the behalf of one session's processes, where these have no network namespace of their own (tiers
// T0 and T1). It has the session's uid and is the parent of its caisson-init: else it could not read where they want to connect
// to. It is not in the session's Landlock domain, but in one around it (builder/connector.h), and nobody in the session can read,
// trace or signal it. It ends with caisson-init, and that with it.
//
// On 3 its line to the door, on 4 that to the child which becomes caisson-init and hands the filter's listener over, on 5 a pidfd
// of this child.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/common/base/scm.h"
#include "launcher/common/watching/notify.h"
#include "launcher/connector/connector.h"
#include "launcher/connector/seal.h"

namespace caisson::connector {
namespace {

constexpr int kDoor = 3, kChild = 4, kPidfd = 5;
constexpr rlim_t kMostFiles = 2048;  // those that are kept, those that wait, and some

std::int64_t now_us() {
  timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

// The listener, or none.
Fd listener_of_child() {
  char word = 0;
  const scm::Received came = scm::receive(kChild, &word, sizeof word);
  return Fd(came.size == 1 && came.count == 1 ? came.fds[0] : -1);
}

class Loop {
 public:
  Loop(Fd epoll, Connector& connector) : epoll_(std::move(epoll)), connector_(connector) {}
  [[nodiscard]] bool watch(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }
  // Until the child ends.
  int run() {
    for (;;) {
      epoll_event event{};
      const int n = ::epoll_wait(epoll_.get(), &event, 1, timeout_ms());
      if (n < 0 && errno != EINTR) return 1;
      if (n > 0) {
        const int fd = event.data.fd;
        if (fd == kPidfd) return 0;
        if (fd == connector_.listener() && (event.events & EPOLLIN) != 0) connector_.call(now_us());
        else if (fd == connector_.listener()) return 0;  // nobody is left under the filter
        else if (fd == connector_.door()) connector_.door_said();
        else if (fd == connector_.auditor()) connector_.auditor_said();
      }
      connector_.give_up(now_us());
    }
  }

 private:
  [[nodiscard]] int timeout_ms() const {
    const std::int64_t due = connector_.due_us();
    return due == 0 ? -1 : static_cast<int>(std::clamp<std::int64_t>((due - now_us() + 999) / 1000, 0, 60'000));
  }
  const Fd epoll_;
  Connector& connector_;
};

int serve() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
  files.rlim_cur = files.rlim_max = std::min(files.rlim_max, kMostFiles);
  const rlimit none{0, 0};
  // Not dumpable: whoever has our uid cannot open what we hold.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::setrlimit(RLIMIT_CORE, &none) != 0 ||
      ::setrlimit(RLIMIT_NOFILE, &files) != 0)
    return 1;
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  int pair[2];
  if (!epoll || !proc || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return 1;
  Fd auditor(pair[0]), theirs(pair[1]);
  Fd listener = listener_of_child();
  if (!listener) return 1;
  auditor::prefer_sync_wake_up(listener.get());
  if (!seal()) return 2;
  Connector connector(std::move(listener), Fd(kDoor), std::move(auditor), std::move(proc));
  Loop loop(std::move(epoll), connector);
  if (!connector.greeted() || !loop.watch(connector.listener()) || !loop.watch(kDoor) || !loop.watch(connector.auditor()) ||
      !loop.watch(kPidfd))
    return 3;
  const char word = 0;
  const int end = theirs.get();
  if (scm::send(kChild, &word, 1, &end, 1) != 1) return 4;
  theirs.reset();
  ::close(kChild);
  return loop.run();
}

}  // namespace
}  // namespace caisson::connector

int main() { return caisson::connector::serve(); }
