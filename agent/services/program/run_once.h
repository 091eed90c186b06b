// One program in a session of its own that is ended afterwards: how the agent asks a question of the session's world (which
// packages are there, which programs the system has) or does something for its client (a hook). The walls are the domain's; the
// agent itself executes nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"

namespace caisson::services {

// Where root's programs lie, Go's own places among them. Nothing below a home: a policy's PATH goes there first, for its users'
// sake.
inline constexpr const char* kSystemPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/usr/lib/go/bin";

struct OneRun {
  std::string domain, workspace;
  std::string label;      // for the audit log: who asked
  bool isolated = false;  // with a home, a /tmp and a network of its own
  std::vector<std::string> argv;
  std::string cwd;
  std::map<std::string, std::optional<std::string>> env;
  std::chrono::milliseconds limit{10'000};  // the launcher then kills it
  std::size_t kept_bytes = 64 * 1024;       // of stdout, and of stderr, the newest; the rest is read and dropped
};

struct OneResult {
  bridge::ExecExit exit;
  std::string out, err;
  bool out_cut = false;  // more was written than is kept
};

// Errors: what the launcher refused, or that the program could not be started; a program that failed is a result.
[[nodiscard]] task<OneResult> run_once(bridge::LauncherClient& launcher, OneRun what);

// What a program says of the system alone: in a session with a home of its own, the container's own system, no variable but a
// PATH of the system's directories. So nothing that a client has put anywhere is run or read. Where there are no private sessions
// there is one workspace, and a shared one is asked with the same variables. io, limit: the program failed, or wrote more than is
// kept.
[[nodiscard]] task<std::string> ask_system(bridge::LauncherClient& launcher, OneRun what);

// "it exited with 3", "it was killed after its time limit", "it was ended by SIGSEGV"; "" for success.
[[nodiscard]] std::string failure_of(const bridge::ExecExit& exit);

}  // namespace caisson::services
