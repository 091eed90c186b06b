// What the launcher client gives to the session code: requests, replies and the handles of living sessions and execs.
// Plain values, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/bridge/end.h"
#include "agent/bridge/notifier.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"

namespace caisson::bridge {

struct Greeting {
  std::string version, tier, home, workspace;
  std::vector<std::string> domains;
  std::int64_t max_sessions = 0;
};

// How an exec ended.
struct ExecExit {
  int exit_code = 0;   // 128 + number when a signal ended it, as shells say it
  std::string signal;  // "SIGKILL", or empty
  std::string reason;  // exit, signal, hard_timeout, oom, session_end
  End end;             // the same in clients' words, with its cause
};

// One running program. `exit` is set once, then `changed` fires.
struct ExecHandle {
  explicit ExecHandle(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::string session, id;
  std::int64_t hard_timeout_ms = 0;
  std::optional<ExecExit> exit;
  Notifier changed;
  // For an exec that outlives the agent: the launcher closes its copy of one pipe ("stdin"), or everything that it holds for it
  // ("").
  std::function<void(const std::string& end)> let_go = [](const std::string&) {};
};

// One living session of the launcher. `on_end` is called once when it ends for whatever reason.
struct SessionHandle {
  std::string id, workspace, domain;
  std::string tools;      // where the session sees the agent's programs; "": nowhere
  bool isolated = false;  // with a home, /tmp and loopback of its own
  bool ended = false;
  std::string end_reason;
  End end;  // set when it has ended, or when we have asked for its end
  json::Value report;
  std::function<void()> on_end;
};

struct PtySize {
  int cols = 120, rows = 40;
};

using Environment = std::map<std::string, std::optional<std::string>>;  // nullopt: unset

struct ExecRequest {
  std::vector<std::string> argv;
  bool tool = false;  // argv[0] is one of the agent's programs for use inside sessions
  std::string cwd;
  Environment env;
  bool with_stdin = true;
  std::optional<PtySize> pty;
  std::optional<std::int64_t> hard_timeout_ms;
  bool keep = false;  // outlives the agent, as its session does
};

struct ExecStarted {
  std::shared_ptr<ExecHandle> handle;
  std::int64_t pid = 0;  // as seen inside the session
  Fd stdin_pipe, stdout_pipe, stderr_pipe;
  Fd pty;
};
// A session that the previous agent left, with those of its commands that the launcher still knows.
struct LeftSession {
  std::shared_ptr<SessionHandle> handle;
  std::string domain;
  std::vector<std::string> execs;
};
// A segment of a session's audit log, open for reading.
struct AuditSegment {
  Fd fd;
  bool running = false;  // its session
};
// The program could not be started; `step` says where ("chdir", "exec", "pty").
struct ExecRefused {
  std::string step;
  Error error;
};
using ExecOutcome = std::variant<ExecStarted, ExecRefused>;

}  // namespace caisson::bridge
