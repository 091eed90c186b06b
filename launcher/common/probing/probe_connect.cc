#include "launcher/common/probing/probe_connect.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/build/load_filter.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"
#include "launcher/common/watching/notify.h"

namespace caisson::confine {
namespace {

constexpr ConnectOutcome kFine{0, ""};
constexpr int kWaitMs = 5'000, kNetAbi = 4;
constexpr std::uint16_t kPort = 9;
constexpr std::uint64_t kNet = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;

sockaddr_in loopback(std::uint16_t port) {
  return {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

// port: what may be connected to, and then a free port be bound; 0: nothing.
bool restrict_ports(std::uint16_t port) {
  const raw::LandlockRulesetAttr attr{0, kNet, 0};
  const Fd ruleset(raw::landlock_create_ruleset(&attr, sizeof attr, 0));
  if (!ruleset || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (port != 0 && (raw::landlock_add_port(ruleset.get(), LANDLOCK_ACCESS_NET_BIND_TCP, 0) != 0 ||
                    raw::landlock_add_port(ruleset.get(), LANDLOCK_ACCESS_NET_CONNECT_TCP, port) != 0))
    return false;
  return raw::landlock_restrict_self(ruleset.get()) == 0;
}

// As a session: its status says whether connect(2) answered what the other process said.
[[noreturn]] void play_session(const Fd& up) {
  constexpr auto kNr = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  const sock_filter told[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  int listener = -1;
  const char word = 0;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // As a program that was executed is: a change of uid has taken it away.
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || !restrict_ports(0) || load_seccomp(told, std::size(told), &listener) != 0 ||
      scm::send(up.get(), &word, 1, &listener, 1) != 1)
    ::_exit(1);
  ::close(listener);
  const int made = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in there = loopback(kPort);
  const int answer = ::connect(made, reinterpret_cast<const sockaddr*>(&there), sizeof there);
  ::_exit(made >= 0 && answer != 0 && errno == EXDEV ? 0 : 2);
}

bool readable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, kWaitMs) == 1 && (ready.revents & POLLIN) != 0;
}

bool next_call(int listener, seccomp_notif& call) { return readable(listener) && auditor::receive(listener, call); }

ConnectOutcome failed(const char* step, int error = errno) { return {error != 0 ? error : EIO, step}; }

// As the connector.
ConnectOutcome play_connector(int listener) {
  seccomp_notif call;
  if (!next_call(listener, call) || call.data.nr != SYS_socket) return failed("listener", EPROTO);
  const Fd kept(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any = loopback(0), wanted = loopback(kPort);
  struct stat st{};
  if (!kept || ::bind(kept.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 || ::fstat(kept.get(), &st) != 0)
    return failed("bind");
  if (!auditor::give(listener, call.id, kept.get(), 0)) return failed("add a descriptor");
  if (!next_call(listener, call) || call.data.nr != SYS_connect) return failed("listener", EPROTO);
  const auto tid = static_cast<pid_t>(call.pid);
  sockaddr_in asked{};
  const iovec local{&asked, sizeof asked}, remote{reinterpret_cast<void*>(call.data.args[1]), sizeof asked};
  if (::process_vm_readv(tid, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(sizeof asked))
    return failed("read the caller's memory");
  const std::string link = "/proc/" + std::to_string(tid) + "/fd/" + std::to_string(static_cast<int>(call.data.args[0]));
  char target[64] = {};
  if (::readlink(link.c_str(), target, sizeof target - 1) < 0) return failed("read the caller's descriptors");
  if (std::memcmp(&asked, &wanted, sizeof asked) != 0 || "socket:[" + std::to_string(st.st_ino) + "]" != target)
    return failed("look at the caller", EPROTO);
  if (!auditor::waits(listener, call.id)) return failed("listener");
  auditor::refuse(listener, call.id, EXDEV);  // which connect(2) never says itself
  return kFine;
}

}  // namespace

ConnectOutcome probe_connect(uid_t uid) {
  if (raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < kNetAbi) return {ENOSYS, "landlock_abi"};
  if (::geteuid() == 0 && ::setresgid(uid, uid, uid) == 0) (void)!::setresuid(uid, uid, uid);
  if (!restrict_ports(kPort)) return failed("landlock_net");
  auto pair = sys::seqpacket_pair();
  if (!pair) return failed("socketpair");
  const pid_t pid = raw::fork_with(0);
  if (pid < 0) return failed("fork");
  if (pid == 0) play_session(pair->second);
  pair->second.reset();
  char word = 0;
  scm::Received came;
  if (readable(pair->first.get())) came = scm::receive(pair->first.get(), &word, 1);
  const Fd listener(came.count == 1 ? came.fds[0] : -1);
  const ConnectOutcome out = listener ? play_connector(listener.get()) : failed("listener", EPROTO);
  if (out.error != 0) ::kill(pid, SIGKILL);
  siginfo_t end{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED) != 0 || out.error != 0) return out;
  return end.si_code == CLD_EXITED && end.si_status == 0 ? out : failed("connect", EPROTO);
}

}  // namespace caisson::confine
