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
  bool implicit = false;                          // made because a request named none, until one names it
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
  // What a later agent is to know of it: after each change of a member.
  void save();
  [[nodiscard]] bool busy() const;
  // The newest command that runs; nullptr when none does.
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

// What the launcher is asked to run, and what goes into the program's stdin first (a command too large for a message).
struct BashLaunch {
  bridge::ExecRequest request;
  std::string preamble;
};
// invalid_argument: a NUL byte, an impossible variable name. limit: an environment too large to be passed.
[[nodiscard]] Result<BashLaunch> plan_bash(const BashSession& session, const BashExecParams& params);

}  // namespace caisson::services
