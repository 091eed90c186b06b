// caisson-gate DOOR_UID DIALER_UID RUN_DIR: what the launcher does for workspaces that have a way out, in a process of its own,
// so that PID 1 neither speaks netlink nor hears what a door that was taken over says. On fd 3 is its socket to the launcher
// (gate_protocol.h).
//
// It has the launcher's rights: it enters a workspace's namespaces (a child of it, capture.h says what is made there), starts
// door and dialer, and gives each what it needs. It reads no byte of a session's. It ends with the launcher, and door and dialer
// with it.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "launcher/common/base/loop.h"
#include "launcher/gate/gate.h"

namespace {

// The opener's uid is the one after the dialer's.
std::string next_uid(const std::string& uid) {
  return uid == "-" ? uid : std::to_string(std::strtoul(uid.c_str(), nullptr, 10) + 1);
}

caisson::Status serve(const char* door, const char* dialer, const char* run) {
  constexpr int kLauncher = 3;
  ::signal(SIGPIPE, SIG_IGN);
  // As the launcher does, which exec has undone: without root its uid may be that of sessions.
  if (::geteuid() != 0 && ::prctl(PR_SET_DUMPABLE, 0) != 0) return caisson::sys_error("prctl PR_SET_DUMPABLE");
  TRY_ASSIGN(const auto loop, caisson::Loop::create({}));
  caisson::gate::Gate gate(*loop, caisson::Fd(kLauncher), {.door = door, .dialer = dialer, .opener = next_uid(dialer)}, run);
  caisson::Status heard;
  TRY(loop->watch(kLauncher, EPOLLIN, [&](std::uint32_t) {
    heard = gate.hear();
    if (!heard) loop->stop();
  }));
  TRY(loop->run());
  return heard;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: caisson-gate DOOR_UID|- DIALER_UID|- RUN_DIR\n", stderr), 64;
  const caisson::Status done = serve(argv[1], argv[2], argv[3]);
  return std::fprintf(stderr, "caisson-gate: %s\n", done ? "ended" : done.error().text().c_str()), 1;
}
