#include "launcher/builder/connector.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/time.h>

#include <cstring>

#include "launcher/common/egress/connector.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"

namespace caisson::confine {
namespace {

constexpr timeval kPatience{5, 0};  // a gate that is started again takes one second

// Our end of a pair whose other end the gate gets, and with it the door. Closed: whoever reads it sees the end.
int line_to_door(int gate, const char* whose, egress::Hello& hello, StepWriter& steps) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) steps.failed(Step::net_ns, errno);
  const auto size = static_cast<ssize_t>(std::strlen(whose));
  if (scm::send(gate, whose, std::strlen(whose), &pair[1], 1) != size) steps.failed(Step::net_ns, errno);
  ::close(pair[1]);
  if (::setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0) steps.failed(Step::net_ns, errno);
  // It stays there: the connector reads it as well.
  if (::recv(pair[0], &hello, sizeof hello, MSG_PEEK) != static_cast<ssize_t>(sizeof hello)) steps.failed(Step::net_ns, EPIPE);
  return pair[0];
}

// A domain around the session's, so that the connector, once taken over, binds no port of its choice and connects to no other
// than the door's. Landlock lets who is in an outer domain read the memory of who is in an inner one. A domain that does not
// permit REFER denies it, so sessions could link nothing from one directory into another.
void bound_ports(std::uint16_t door, StepWriter& steps) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) steps.failed(Step::net_ns, errno);
  if (faults::skip("landlock")) return;
  const raw::LandlockRulesetAttr attr{LANDLOCK_ACCESS_FS_REFER, LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP,
                                      0};
  const int ruleset = raw::landlock_create_ruleset(&attr, sizeof attr, 0), root = ::open("/", O_PATH | O_CLOEXEC);
  if (ruleset < 0 || root < 0 || raw::landlock_add_path(ruleset, LANDLOCK_ACCESS_FS_REFER, root) != 0 ||
      raw::landlock_add_port(ruleset, LANDLOCK_ACCESS_NET_BIND_TCP, 0) != 0 ||
      raw::landlock_add_port(ruleset, LANDLOCK_ACCESS_NET_CONNECT_TCP, door) != 0 || raw::landlock_restrict_self(ruleset) != 0)
    steps.failed(Step::net_ns, errno);
  ::close(ruleset), ::close(root);
}

// 3: line to the door; 4: to the child, which hands the filter's listener over; 5: pidfd of the child.
[[noreturn]] void become(const ChildArgs& args, int program, int door, int session, int pidfd) {
  int fds[] = {door, session, pidfd};
  for (int& fd : fds) fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 16);
  program = ::fcntl(program, F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < 3; ++i)
    if (::dup2(args.null, i) != i || ::dup2(fds[i], 3 + i) != 3 + i) ::_exit(1);
  if (::close_range(6, ~0U, CLOSE_RANGE_CLOEXEC) != 0) ::_exit(1);
  if (::setsid() < 0 && errno != EPERM) ::_exit(1);
  (void)caps_drop_bounding();  // where it stays, no_new_privs makes it moot
  const uid_t uid = args.uid;
  const gid_t gid = args.gid;
  if (args.plan->change_uid &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(gid, gid, gid) != 0 || ::setresuid(uid, uid, uid) != 0 || ::getuid() == 0))
    ::_exit(1);
  if (!caps_drop_all()) ::_exit(1);
  char name[] = "caisson-connector";
  char *argv[] = {name, nullptr}, *envp[] = {nullptr};
  raw::execveat(program, "", argv, envp, AT_EMPTY_PATH);
  ::_exit(1);
}

}  // namespace

int fork_from_connector(const ChildArgs& args, int gate, const char* whose, int program) {
  StepWriter steps(args.answer);
  if (gate < 0 || program < 0) steps.failed(Step::net_ns, EBADF);
  egress::Hello hello{};
  const int door = line_to_door(gate, whose, hello, steps);
  bound_ports(hello.port, steps);
  int pair[2], pidfd = -1;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) steps.failed(Step::net_ns, errno);
  const pid_t pid = raw::fork_into(&pidfd, -1);
  if (pid < 0) steps.failed(Step::net_ns, errno);
  if (pid > 0) become(args, program, door, pair[0], pidfd);
  ::close(pair[0]);
  ::close(door);
  return pair[1];
}

}  // namespace caisson::confine
