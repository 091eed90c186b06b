#include "launcher/connector/connector.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/watching/notify.h"
#include "launcher/connector/caller.h"

namespace caisson::connector {
namespace {

using auditor::give;
using auditor::go_on;
using auditor::refuse;
using auditor::succeed;
using auditor::waits;

constexpr std::size_t kShortestV6 = 24;  // without the scope, as the kernel takes it (SIN6_LEN_RFC2133)
constexpr std::size_t kMostWaiting = 1024;

// Where an address leads, as the door is asked; 0, or the errno of one that leads nowhere.
int place_of(const sockaddr_storage& address, std::size_t size, int family, egress::Ask& ask) {
  if (address.ss_family != family) return EAFNOSUPPORT;
  if (family == AF_INET) {
    sockaddr_in v4;
    if (size < sizeof v4) return EINVAL;
    std::memcpy(&v4, &address, sizeof v4);
    std::memcpy(ask.address, &v4.sin_addr, 4);
    ask.port = ntohs(v4.sin_port);
    return 0;
  }
  sockaddr_in6 v6{};
  if (size < kShortestV6) return EINVAL;
  std::memcpy(&v6, &address, std::min(size, sizeof v6));
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) != 0;
  ask.v6 = !mapped;
  std::memcpy(ask.address, v6.sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
  ask.port = ntohs(v6.sin6_port);
  return 0;
}

// -1: nothing to hear just now; 0: it is gone, or sends what it may not.
template <class T>
int hear(const Fd& from, T& into) {
  const scm::Received came = scm::receive(from.get(), &into, sizeof into, MSG_DONTWAIT);
  for (std::size_t i = 0; i < came.count; ++i) ::close(came.fds[i]);
  if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
  return came.size == static_cast<ssize_t>(sizeof into) && !came.cut() && came.count == 0 ? 1 : 0;
}

}  // namespace

bool Connector::greeted() {
  egress::Hello hello{};
  if (hear(door_, hello) != 1) return false;
  port_ = hello.port;
  return true;
}

void Connector::call(std::int64_t now_us) {
  seccomp_notif call;
  if (!auditor::receive(listener_.get(), call)) return;  // its process was killed in between
  const auto family = static_cast<int>(call.data.args[0]), protocol = static_cast<int>(call.data.args[2]);
  const bool tcp = (family == AF_INET || family == AF_INET6) && (call.data.args[1] & 0xf) == SOCK_STREAM &&
                   (protocol == 0 || protocol == IPPROTO_TCP);
  if (call.data.nr == SYS_connect) connect(call, now_us);
  else if (call.data.nr == SYS_socket && tcp) make(call);
  else refused(call);
}

void Connector::make(const seccomp_notif& call) {
  Kept made;
  const auto type = static_cast<int>(call.data.args[1]);
  int error = make_socket(static_cast<int>(call.data.args[0]), type, static_cast<int>(call.data.args[2]), made);
  if (error == 0 && give(listener_.get(), call.id, made.fd.get(), (type & SOCK_CLOEXEC) != 0 ? O_CLOEXEC : 0U))
    return sockets_.keep(std::move(made));
  if (error == 0) error = errno;  // EMFILE, by the caller's own limit
  refuse(listener_.get(), call.id, error);
}

// The address is copied once, and what was copied is what counts. What is let go on is judged by Landlock, which lets no TCP
// connection be made: the address that the kernel then reads may be another.
void Connector::connect(const seccomp_notif& call, std::int64_t now_us) {
  const auto tid = static_cast<pid_t>(call.pid);
  const auto size = static_cast<std::uint32_t>(call.data.args[2]);
  sockaddr_storage address{};
  if (size < sizeof address.ss_family || size > sizeof address) return refuse(listener_.get(), call.id, EINVAL);
  int error = read_memory(tid, call.data.args[1], &address, size);
  const bool inet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  if (error == 0 && !inet && address.ss_family != AF_UNSPEC) return go_on(listener_.get(), call.id);
  const std::uint64_t inode = error == 0 ? socket_of(proc_, tid, static_cast<int>(call.data.args[0]), error) : 0;
  if (!waits(listener_.get(), call.id)) return;
  if (error != 0) return refuse(listener_.get(), call.id, error);
  // What is not kept was connected before, as a rule.
  const Kept* kept = sockets_.find(inode);
  if (kept == nullptr && inet) return refuse(listener_.get(), call.id, EISCONN);
  if (kept == nullptr) return go_on(listener_.get(), call.id);
  if (!inet) return succeed(listener_.get(), call.id, 0);  // what is not connected stays so
  egress::Ask ask{.wish = egress::Wish::connect};
  error = place_of(address, size, kept->family, ask);
  ask.from = bound_port(*kept);
  ask.waits = (::fcntl(kept->fd.get(), F_GETFL) & O_NONBLOCK) == 0;
  if (error == 0 && ask.from == 0) error = EADDRNOTAVAIL;
  if (error == 0 && !door_) error = ENETUNREACH;
  if (error == 0 && waiting_.size() >= kMostWaiting) error = EAGAIN;
  if (error != 0) return refuse(listener_.get(), call.id, error);
  connect(call, inode, ask, now_us);
}

void Connector::connect(const seccomp_notif& call, std::uint64_t inode, egress::Ask ask, std::int64_t now_us) {
  ask.id = ++last_;
  Waiting waiting{.call = call.id, .socket = *sockets_.take(inode), .from = ask.from, .until_us = now_us + egress::kPatienceUs};
  if (!tell(ask)) return answered(std::move(waiting), ENETUNREACH);
  waiting_.emplace(ask.id, std::move(waiting));
}

void Connector::answered(Waiting waiting, int error) {
  const bool still = waits(listener_.get(), waiting.call), permitted = error == 0;
  if (permitted && still) error = connect_to(waiting.socket, port_);
  // A process may have given the port up that was announced, by listen(2) and shutdown(2): then nothing comes from there.
  const bool came = still && (error == 0 || error == EINPROGRESS) && bound_port(waiting.socket) == waiting.from;
  if (permitted && !came) withdraw(waiting.from);
  const bool over = error == 0 || error == EINPROGRESS;
  if (!over) sockets_.keep(std::move(waiting.socket));  // it can be tried again
  if (error == 0) succeed(listener_.get(), waiting.call, 0);
  else refuse(listener_.get(), waiting.call, error);
}

void Connector::withdraw(std::uint16_t from) { (void)tell({.wish = egress::Wish::withdraw, .from = from}); }

// Never waits. One that does not keep up is not asked.
bool Connector::tell(const egress::Ask& ask) {
  return door_ && scm::send(door_.get(), &ask, sizeof ask, nullptr, 0, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof ask);
}

void Connector::door_said() {
  egress::Reply told{};
  const int heard = hear(door_, told);
  if (heard < 0) return;
  if (heard == 0) return fail_all();
  auto waiting = waiting_.extract(told.id);
  if (!waiting.empty()) answered(std::move(waiting.mapped()), told.error);
}

// From here on nothing goes out.
void Connector::fail_all() {
  door_.reset();
  for (auto& [id, waiting] : std::exchange(waiting_, {})) answered(std::move(waiting), ENETUNREACH);
}

std::int64_t Connector::due_us() const { return waiting_.empty() ? 0 : waiting_.begin()->second.until_us; }

// They are in the order of their asking.
void Connector::give_up(std::int64_t now_us) {
  while (!waiting_.empty() && waiting_.begin()->second.until_us <= now_us) {
    auto waiting = waiting_.extract(waiting_.begin());
    withdraw(waiting.mapped().from);
    answered(std::move(waiting.mapped()), ETIMEDOUT);
  }
}

// Without the auditor, or one that does not keep up, it is answered as the kernel would.
void Connector::refused(const seccomp_notif& call) {
  if (!auditor_ || scm::send(auditor_.get(), &call, sizeof call, nullptr, 0, MSG_DONTWAIT) < 0)
    refuse(listener_.get(), call.id, ENOSYS);
}

void Connector::auditor_said() {
  auditor::Answered answered{};
  const int heard = hear(auditor_, answered);
  if (heard > 0) refuse(listener_.get(), answered.call, EPERM);
  if (heard == 0) auditor_.reset();
}

}  // namespace caisson::connector
