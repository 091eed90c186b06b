// Requests and responses of /v1/bash, by the contract's names.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "agent/routes/end_types.h"
#include "agent/routes/isolation.h"

namespace caisson::routes {

struct BashExecRequest {
  std::optional<std::string> session_id;
  std::string command;
  std::optional<std::string> exec_dir;
  std::optional<std::map<std::string, std::optional<std::string>>> env;
  bool async_mode = false;
  std::optional<double> timeout, hard_timeout;
  std::int64_t max_output_length = 50'000;
};
struct BashExecResult {
  std::string session_id, command_id, command, status;
  std::optional<std::string> stdout_text, stderr_text;
  std::optional<std::int64_t> exit_code;
  std::int64_t offset = 0, stderr_offset = 0;
  std::optional<bridge::End> end;
};
struct BashOutputRequest {
  std::string session_id;
  std::optional<std::string> command_id;
  std::int64_t offset = 0, stderr_offset = 0;
  bool wait = false;
  double wait_timeout = 30;
};
struct BashCommandInfo {
  std::string command_id, command, status;
  std::optional<std::int64_t> exit_code;
  std::optional<bridge::End> end;
};
struct BashOutputResult {
  std::string session_id;
  std::string stdout_text, stderr_text;
  std::int64_t offset = 0, stderr_offset = 0;
  std::optional<BashCommandInfo> command;
};
struct BashWriteRequest {
  std::string session_id;
  std::optional<std::string> command_id;
  std::string input;
};
struct BashKillRequest {
  std::string session_id;
  std::string signal = "SIGTERM";
};
struct BashSessionCreateRequest {
  std::optional<std::string> session_id, exec_dir, snapshot_path, isolation;
};
struct BashSessionInfo {
  std::string session_id, status, working_dir, created_at, last_used_at;
  std::optional<std::string> current_command;
  std::int64_t command_count = 0;
};

inline constexpr std::array<std::string_view, 5> kCommandStatus = {"pending", "running", "completed", "timed_out", "killed"};
inline constexpr std::array<std::string_view, 2> kSessionStatus = {"ready", "closed"};

template <>
struct Schema<BashExecRequest> {
  static constexpr std::string_view name = "BashExecRequest";
  static constexpr auto fields = std::tuple{
      field("session_id", &BashExecRequest::session_id, "Session to run in; a new one when absent or empty"),
      field("command", &BashExecRequest::command, "Shell command to execute"),
      field("exec_dir", &BashExecRequest::exec_dir,
            "Working directory of this command and, from now on, of the session. cd inside a command does not persist"),
      field("env", &BashExecRequest::env, "Environment of this command only; a null value unsets the variable"),
      field("async_mode", &BashExecRequest::async_mode, "Return at once; read the output with /v1/bash/output").defaulted(),
      field("timeout", &BashExecRequest::timeout, "Seconds until the answer; the command goes on"),
      field("hard_timeout", &BashExecRequest::hard_timeout, "Seconds until the command is killed (status timed_out)"),
      field("max_output_length", &BashExecRequest::max_output_length,
            "Characters of stdout and of stderr in the answer; the middle is cut. 0: no limit. Only without async_mode")
          .defaulted()};
};
template <>
struct Schema<BashExecResult> {
  static constexpr std::string_view name = "BashExecResult";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashExecResult::session_id, "Session identifier"),
                 field("command_id", &BashExecResult::command_id, "Command identifier"),
                 field("command", &BashExecResult::command, "The command"),
                 field("status", &BashExecResult::status, "State of the command, not its success").one_of(kCommandStatus),
                 field("stdout", &BashExecResult::stdout_text, "Standard output so far"),
                 field("stderr", &BashExecResult::stderr_text, "Standard error so far"),
                 field("exit_code", &BashExecResult::exit_code, "Exit code, when completed"),
                 field("offset", &BashExecResult::offset, "Byte offset in stdout for /v1/bash/output").defaulted(),
                 field("stderr_offset", &BashExecResult::stderr_offset, "Byte offset in stderr").defaulted(),
                 end_field(&BashExecResult::end)};
};
template <>
struct Schema<BashOutputRequest> {
  static constexpr std::string_view name = "BashOutputRequest";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashOutputRequest::session_id, "Session identifier"),
                 field("command_id", &BashOutputRequest::command_id, "Command; the newest of the session when absent"),
                 field("offset", &BashOutputRequest::offset, "Byte offset in stdout to read from").defaulted(),
                 field("stderr_offset", &BashOutputRequest::stderr_offset, "Byte offset in stderr to read from").defaulted(),
                 field("wait", &BashOutputRequest::wait, "Wait for new output or the end of the command").defaulted(),
                 field("wait_timeout", &BashOutputRequest::wait_timeout, "Seconds to wait at most").defaulted()};
};
template <>
struct Schema<BashCommandInfo> {
  static constexpr std::string_view name = "BashCommandInfo";
  static constexpr auto fields =
      std::tuple{field("command_id", &BashCommandInfo::command_id, "Command identifier"),
                 field("command", &BashCommandInfo::command, "The command"),
                 field("status", &BashCommandInfo::status, "State of the command").one_of(kCommandStatus),
                 field("exit_code", &BashCommandInfo::exit_code, "Exit code, when completed"), end_field(&BashCommandInfo::end)};
};
template <>
struct Schema<BashOutputResult> {
  static constexpr std::string_view name = "BashOutputResult";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashOutputResult::session_id, "Session identifier"),
                 field("stdout", &BashOutputResult::stdout_text, "Standard output since offset").defaulted(),
                 field("stderr", &BashOutputResult::stderr_text, "Standard error since stderr_offset").defaulted(),
                 field("offset", &BashOutputResult::offset, "Byte offset for the next request").defaulted(),
                 field("stderr_offset", &BashOutputResult::stderr_offset, "Byte offset for the next request").defaulted(),
                 field("command", &BashOutputResult::command, "The command of this output")};
};
template <>
struct Schema<BashWriteRequest> {
  static constexpr std::string_view name = "BashWriteRequest";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashWriteRequest::session_id, "Session identifier"),
                 field("command_id", &BashWriteRequest::command_id, "Command; the newest running one when absent"),
                 field("input", &BashWriteRequest::input, "Bytes for stdin. \\u0004 alone closes it")};
};
template <>
struct Schema<BashKillRequest> {
  static constexpr std::string_view name = "BashKillRequest";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashKillRequest::session_id, "Session whose running commands get the signal"),
                 field("signal", &BashKillRequest::signal, "SIGTERM, SIGKILL or SIGINT").defaulted()};
};
template <>
struct Schema<BashSessionCreateRequest> {
  static constexpr std::string_view name = "BashSessionCreateRequest";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashSessionCreateRequest::session_id, "Identifier; generated when absent or empty"),
                 field("exec_dir", &BashSessionCreateRequest::exec_dir, "Default working directory"),
                 field("snapshot_path", &BashSessionCreateRequest::snapshot_path, "Script that is sourced before each command"),
                 isolation_field(&BashSessionCreateRequest::isolation)};
};
template <>
struct Schema<BashSessionInfo> {
  static constexpr std::string_view name = "BashSessionInfo";
  static constexpr auto fields =
      std::tuple{field("session_id", &BashSessionInfo::session_id, "Session identifier"),
                 field("status", &BashSessionInfo::status, "ready or closed").one_of(kSessionStatus),
                 field("working_dir", &BashSessionInfo::working_dir, "Default working directory"),
                 field("created_at", &BashSessionInfo::created_at, "When it was made").format("date-time"),
                 field("last_used_at", &BashSessionInfo::last_used_at, "When it was last used").format("date-time"),
                 field("current_command", &BashSessionInfo::current_command, "The newest running command"),
                 field("command_count", &BashSessionInfo::command_count, "Commands so far").defaulted()};
};

}  // namespace caisson::routes
