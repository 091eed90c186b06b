// caisson-observer: holds the listeners of the sessions whose policy has their paths observed. It reads what a call names from
// the caller's memory, which only the launcher's uid may, tells the auditor, and answers: what the filter refuses is refused,
// what it allows goes on. It opens nothing and understands nothing of what it reads. When the auditor is gone it answers without
// telling, because calls that nobody answers would fail; it ends when it holds no listener any more.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/scm.h"
#include "launcher/common/tables/path_calls.h"
#include "launcher/common/watching/notify.h"
#include "launcher/common/watching/observer_protocol.h"
#include "launcher/common/watching/seal.h"
#include "launcher/common/wire/auditor_protocol.h"

namespace caisson::auditor {
namespace {

constexpr std::uint64_t kSocketKey = 0;  // the auditor counts from 1
constexpr std::uint64_t kPage = 4096;
constexpr int kSilentMs = 2'000;  // so long at most a call waits for the auditor

std::int64_t now_ms() {
  timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

// Bytes of another process; 0 when the first one cannot be read. Nothing behind the page with the first unreadable byte.
std::size_t read_memory(pid_t tid, std::uint64_t address, char* to, std::size_t size) {
  const std::size_t first = std::min<std::size_t>(size, kPage - address % kPage);
  iovec local{to, size};
  // What is transferred in part is whole elements: a string that ends before a page that is not there is read.
  iovec remote[2] = {{reinterpret_cast<void*>(address), first}, {reinterpret_cast<void*>(address + first), size - first}};
  const ssize_t n = ::process_vm_readv(tid, &local, 1, remote, first < size ? 2 : 1, 0);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

class Observer {
 public:
  Observer(Fd epoll, Fd socket_only, Fd proc)
      : epoll_(std::move(epoll)), socket_only_(std::move(socket_only)), proc_(std::move(proc)) {}

  int run() {
    if (!add(epoll_, kSocketFd, kSocketKey) || !add(socket_only_, kSocketFd, kSocketKey)) return 3;
    std::array<epoll_event, 64> events;
    while (auditor_ || !sessions_.empty()) {
      const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      if (n < 0 && errno != EINTR) return 4;
      for (int i = 0; i < n; ++i) {
        const epoll_event& e = events[static_cast<std::size_t>(i)];
        if (e.data.u64 == kSocketKey) (void)take_order();
        else hear(e.data.u64, e.events);
      }
    }
    return 0;
  }

 private:
  struct Watched {
    Fd listener;
    std::set<int> refused;
    std::int64_t rest_until_ms = 0;
    std::uint64_t passed_untold = 0, refused_untold = 0;
  };

  static bool add(const Fd& to, int fd, std::uint64_t key) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
    return ::epoll_ctl(to.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // One call, so that no session keeps the others waiting for more.
  void hear(std::uint64_t key, std::uint32_t events) {
    const auto it = sessions_.find(key);
    if (it == sessions_.end()) return;
    if ((events & EPOLLIN) == 0) return gone(key);
    seccomp_notif call;
    if (!receive(it->second.listener.get(), call)) return;  // its process was killed in between
    const PathCall* names = observed_call(call.data.nr);
    // A number that is both, or neither, would be a fault of ours; refusing is what a filter without a listener would do.
    const bool passes = names != nullptr && !it->second.refused.contains(call.data.nr);
    if (auditor_ && now_ms() >= it->second.rest_until_ms) tell(it->second, key, call, passes ? names : nullptr);
    else ++(passes ? it->second.passed_untold : it->second.refused_untold);
    const auto still = sessions_.find(key);  // the auditor may have released it while we waited for its word
    if (still == sessions_.end()) return;
    if (passes) go_on(still->second.listener.get(), call.id);
    else refuse(still->second.listener.get(), call.id, EPERM);
  }

  void tell(Watched& session, std::uint64_t key, const seccomp_notif& call, const PathCall* names) {
    Told told{.type = Told::Type::call, .key = key, .call = call};
    std::size_t size = sizeof told;
    if (names != nullptr) {
      look(call, *names, told, size);
      // A descriptor's own file (fstat), an address that is no path: nothing is named.
      if (told.sizes[0] == 0 && told.sizes[2] == 0) return;
      // While its caller waits the number is the caller's; killed in between, it may be another's by now.
      if (!waits(session.listener.get(), call.id)) return;
    }
    told.refused = std::exchange(session.refused_untold, 0), told.passed = std::exchange(session.passed_untold, 0);
    if (!send(told, size)) return;
    const std::int64_t until = now_ms() + kSilentMs;
    for (bool answered = false; auditor_ && !answered;) {
      epoll_event event{};
      // Of all that may be ready only the socket matters now; its own set has nothing else in it.
      const std::int64_t left = until - now_ms();
      const int n = left > 0 ? ::epoll_wait(socket_only_.get(), &event, 1, static_cast<int>(left)) : 0;
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) lose();
      else answered = take_order();
    }
  }

  // The texts that the call names, behind the head.
  void look(const seccomp_notif& call, const PathCall& names, Told& told, std::size_t& size) {
    const auto tid = static_cast<pid_t>(call.pid);
    const auto& args = call.data.args;
    if (names.nr == SYS_connect || names.nr == SYS_bind) {
      told.sizes[0] = socket_path(tid, args[1], args[2], buffer_ + size);
    } else {
      told.sizes[0] = text(tid, args[names.path], buffer_ + size);
    }
    place(tid, names.dir < 0 ? AT_FDCWD : static_cast<int>(args[names.dir]), told.sizes[0], told.sizes[1], size);
    if (names.second != Want::nothing) {
      told.sizes[2] = text(tid, args[names.second_path], buffer_ + size);
      place(tid, names.second_dir < 0 ? AT_FDCWD : static_cast<int>(args[names.second_dir]), told.sizes[2], told.sizes[3], size);
    }
    if (names.nr == SYS_openat2 &&
        read_memory(tid, args[2], reinterpret_cast<char*>(&told.open_flags), sizeof told.open_flags) == 0)
      told.open_flags = 0;
  }

  // A path that was put at `size`: moves behind it, and puts where it begins there when it is relative. Where a descriptor of
  // the caller's leads only its own user may ask.
  void place(pid_t tid, int dir, std::uint32_t path, std::uint32_t& base, std::size_t& size) {
    if (path == Told::kUnread || path == 0) return;
    const bool relative = buffer_[size] != '/';
    size += path;
    if (!relative) return;
    const std::string link = std::to_string(tid) + "/cwd";
    const ssize_t n = dir == AT_FDCWD ? ::readlinkat(proc_.get(), link.c_str(), buffer_ + size, kMaxPath) : -1;
    base = n < 0 ? Told::kUnread : static_cast<std::uint32_t>(n);
    if (n > 0) size += static_cast<std::size_t>(n);
  }

  static std::uint32_t text(pid_t tid, std::uint64_t address, char* to) {
    if (address == 0) return 0;  // utimensat of a descriptor
    const std::size_t n = read_memory(tid, address, to, kMaxPath), length = ::strnlen(to, n);
    return length < n ? static_cast<std::uint32_t>(length) : Told::kUnread;
  }

  static std::uint32_t socket_path(pid_t tid, std::uint64_t address, std::uint64_t length, char* to) {
    sockaddr_un un{};
    const std::size_t n = read_memory(tid, address, reinterpret_cast<char*>(&un), std::min<std::uint64_t>(length, sizeof un));
    if (n <= sizeof un.sun_family || un.sun_family != AF_UNIX) return 0;
    const std::size_t size = ::strnlen(un.sun_path, n - sizeof un.sun_family);  // 0: an abstract name
    std::memcpy(to, un.sun_path, size);
    return static_cast<std::uint32_t>(size);
  }

  bool send(const Told& told, std::size_t size) {
    std::memcpy(buffer_, &told, sizeof told);
    if (scm::send(kSocketFd, buffer_, size, nullptr, 0, 0) >= 0) return true;
    lose();
    return false;
  }

  // The session is over, or nobody listens to it any more.
  void gone(std::uint64_t key) {
    auto node = sessions_.extract(key);
    if (node.empty()) return;
    const Watched& last = node.mapped();
    const Told told{.type = Told::Type::gone, .key = key, .refused = last.refused_untold, .passed = last.passed_untold};
    if (auditor_) (void)send(told, sizeof told);
  }

  // True: the auditor has said that the call it was told of can go on.
  bool take_order() {
    ToObserver order;
    char message[kMaxToObserver + 1];
    const scm::Received came = scm::receive(kSocketFd, message, sizeof message, MSG_DONTWAIT);
    Fd listener(came.count > 0 ? came.fds[0] : -1);
    for (std::size_t i = 1; i < came.count; ++i) ::close(came.fds[i]);
    if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (came.size < static_cast<ssize_t>(sizeof order) || came.cut()) {
      lose();
      return false;
    }
    std::memcpy(&order, message, sizeof order);
    if (order.type == ToObserver::Type::watch && listener) {
      prefer_sync_wake_up(listener.get());
      Watched watched;
      for (std::size_t at = sizeof order; at + sizeof(int) <= static_cast<std::size_t>(came.size); at += sizeof(int)) {
        int nr = 0;
        std::memcpy(&nr, message + at, sizeof nr);
        watched.refused.insert(nr);
      }
      // With a listener that nobody asks the session would hang; closed, its calls are answered ENOSYS.
      if (!add(epoll_, listener.get(), order.key)) return false;
      watched.listener = std::move(listener);
      sessions_.insert_or_assign(order.key, std::move(watched));
    } else if (order.type == ToObserver::Type::release) {
      gone(order.key);
    } else if (order.type == ToObserver::Type::answered) {
      const auto it = sessions_.find(order.key);
      if (it != sessions_.end() && order.rest_ms > 0) it->second.rest_until_ms = now_ms() + order.rest_ms;
      return true;
    }
    return false;
  }

  // From here on nobody is told.
  void lose() {
    auditor_ = false;
    ::close(kSocketFd);
  }

  const Fd epoll_, socket_only_, proc_;
  std::map<std::uint64_t, Watched> sessions_;
  bool auditor_ = true;
  char buffer_[kMaxTold];
};

int observe() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), socket_only(::epoll_create1(EPOLL_CLOEXEC)),
      proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Not dumpable: nobody of our uid opens what we hold.
  if (!epoll || !socket_only || !proc || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return 1;
  static Observer observer(std::move(epoll), std::move(socket_only), std::move(proc));
  if (!seal(Role::observer)) return 2;
  return observer.run();
}

}  // namespace
}  // namespace caisson::auditor

int main() { return caisson::auditor::observe(); }
