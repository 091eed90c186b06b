// BashSession: one API session of /v1/bash: a session of the launcher and the commands that ran in it. Nothing but the
// default working directory and the snapshot persists between commands; commands may run side by side.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/services/program/command.h"

namespace caisson::services {

struct BashSession {
  std::string id;
  bool implicit = false;                          // made by a request that named none, until a request names it
  std::shared_ptr<bridge::SessionHandle> handle;  // nullptr: it rests (BashService::rest)
  std::string working_dir;
  std::string snapshot_path;
  std::int64_t created_ns = 0, last_used_ns = 0;  // real time, for clients
  bridge::Clock::time_point last_used;
  std::deque<std::shared_ptr<Command>> commands;  // oldest first
  std::int64_t command_count = 0;
  int starting = 0;  // execs that are not in `commands` yet
  bool closed = false;
  Keep::Record record;

  void touch();
  // Keeps its state for a later agent; called after each change of a member.
  void save();
  [[nodiscard]] bool busy() const;
  // The newest running command; nullptr: none runs.
  [[nodiscard]] std::shared_ptr<Command> current() const;
  [[nodiscard]] std::shared_ptr<Command> latest() const { return commands.empty() ? nullptr : commands.back(); }
  [[nodiscard]] std::shared_ptr<Command> find(const std::string& command_id) const;
  void remember(std::shared_ptr<Command> command, std::size_t most_finished);
};

// One command as a client asks for it. A null value in env unsets the variable.
struct BashExecParams {
  std::string command;
  std::optional<std::string> exec_dir;
  std::map<std::string, std::optional<std::string>> env;
  std::optional<double> hard_timeout;
};

// The launcher's request, and the text that goes into stdin first (of a command too large for a message).
struct BashLaunch {
  bridge::ExecRequest request;
  std::string preamble;
};
// invalid_argument: a NUL byte, or an impossible variable name. limit: the environment is too large for a message.
[[nodiscard]] Result<BashLaunch> plan_bash(const BashSession& session, const BashExecParams& params);

}  // namespace caisson::services
