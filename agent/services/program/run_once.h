// Runs one program in a session of its own, then ends the session. The agent uses it to ask what sessions see (installed
// packages, programs of the system), and to run hooks. The walls are the domain's; the agent itself executes nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "launcher/common/base/json.h"

namespace caisson::services {

// The directories of root's programs, including Go's. None lies below a home, unlike those of a policy's PATH.
inline constexpr const char* kSystemPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/usr/lib/go/bin";

struct OneRun {
  std::string domain, workspace;
  std::string label;      // the asker, for the audit log
  bool isolated = false;  // with a home, a /tmp and a network of its own
  std::vector<std::string> argv;
  std::string script;  // of the agent's tools: the system's Python runs it, with argv as its arguments
  std::string input;   // its stdin, at most kMostInput; "": it has none
  std::string cwd;
  std::map<std::string, std::optional<std::string>> env;
  std::chrono::milliseconds limit{10'000};  // the launcher then kills it
  std::size_t kept_bytes = 64 * 1024;       // of stdout and of stderr each, the newest bytes; the rest is read and dropped
};

inline constexpr std::size_t kMostInput = 64 * 1024 * 1024;

struct OneResult {
  bridge::ExecExit exit;
  std::string out, err;
  bool out_cut = false;  // more was written than is kept
};

// Error: the launcher refused, or the program could not be started. A program that failed is a result.
[[nodiscard]] task<OneResult> run_once(bridge::LauncherClient& launcher, OneRun what);

// The output of a program that depends on the system alone: it runs in a private session, on the container's own system, with a
// PATH of the system's directories as its only variable. It therefore runs or reads nothing that a client has put anywhere.
// Without private sessions there is only one workspace, and a shared session is used with the same variables. io, limit: the
// program failed, or wrote more than is kept.
[[nodiscard]] task<std::string> ask_system(bridge::LauncherClient& launcher, OneRun what);

// The answer of a script of the agent's tools to a job: it reads a line of JSON, and `body` behind it, and prints one object,
// {"done": any} or {"refused": text}. What it reads is hostile, and so may be its answer, of which only the bounds are certain.
// invalid_argument: it refused, in its words; io, limit: it failed, or said too much.
[[nodiscard]] task<json::Value> ask_script(bridge::LauncherClient& launcher, OneRun what, json::Value job, std::string body = "");

// "it exited with 3", "it was killed after its time limit", "it was ended by SIGSEGV"; "" for success.
[[nodiscard]] std::string failure_of(const bridge::ExecExit& exit);

}  // namespace caisson::services
