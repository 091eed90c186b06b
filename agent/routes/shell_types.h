// Requests and responses of /v1/shell, by the contract's names.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"
#include "agent/routes/isolation.h"

namespace caisson::routes {

struct ConsoleRecord {
  std::string ps1, command, output;
};
struct ShellExecRequest {
  std::optional<std::string> id, exec_dir;
  std::string command;
  bool async_mode = false;
  std::optional<double> timeout;
  std::optional<bool> strict;
  std::optional<std::int64_t> no_change_timeout;
  std::optional<double> hard_timeout;
  std::optional<bool> preserve_symlinks = false;
  bool truncate = true;
};
struct ShellCommandResult {
  std::string session_id, command, status;
  std::optional<std::string> output;
  std::optional<std::vector<ConsoleRecord>> console;
  std::optional<std::int64_t> exit_code;
  std::optional<bridge::End> end;
};
struct ShellViewRequest {
  std::string id;
};
struct ShellViewResult {
  std::string output, session_id;
  std::optional<std::vector<ConsoleRecord>> console;
  std::string status;
  std::optional<std::string> command;
  std::optional<std::int64_t> exit_code;
  std::optional<bridge::End> end;
};
struct ShellWaitRequest {
  std::string id;
  std::optional<std::int64_t> seconds, max_wait_seconds;
};
struct ShellWaitResult {
  std::string status;
  std::optional<bridge::End> end;
};
struct ShellWriteToProcessRequest {
  std::string id, input;
  bool press_enter = false;
};
struct ShellWriteResult {
  std::string status;
};
struct ShellKillProcessRequest {
  std::string id;
};
struct ShellKillResult {
  std::string status;
  std::optional<std::int64_t> exit_code, returncode;
  std::optional<bridge::End> end;
};
struct ShellCreateSessionRequest {
  std::optional<std::string> id, exec_dir, isolation;
  std::optional<std::int64_t> no_change_timeout;
  std::optional<bool> preserve_symlinks = false;
};
struct ShellCreateSessionResponse {
  std::string session_id, working_dir;
};
struct ShellUpdateSessionRequest {
  std::string id;
  std::optional<std::int64_t> no_change_timeout;
};
struct ShellSessionInfo {
  std::string working_dir, created_at, last_used_at;
  std::int64_t age_seconds = 0;
  std::string status;
  std::optional<std::string> current_command;
};
struct ActiveShellSessionsResult {
  std::map<std::string, ShellSessionInfo> sessions;
};
struct ShellSessionStats {
  std::int64_t total_sessions = 0, active_sessions = 0, idle_sessions = 0, max_sessions = 0, session_timeout = 0;
  double usage_ratio = 0;
};

inline constexpr std::array<std::string_view, 5> kShellStatus = {"running", "completed", "no_change_timeout", "hard_timeout",
                                                                 "terminated"};

template <>
struct Schema<ConsoleRecord> {
  static constexpr std::string_view name = "ConsoleRecord";
  static constexpr auto fields =
      std::tuple{field("ps1", &ConsoleRecord::ps1, "Prompt"), field("command", &ConsoleRecord::command, "Command"),
                 field("output", &ConsoleRecord::output, "Its output").defaulted()};
};
template <>
struct Schema<ShellExecRequest> {
  static constexpr std::string_view name = "ShellExecRequest";
  static constexpr auto fields = std::tuple{
      field("id", &ShellExecRequest::id, "Session; a new one when absent or empty"),
      field("exec_dir", &ShellExecRequest::exec_dir, "Directory to change to first"),
      field("command", &ShellExecRequest::command, "Shell command to execute"),
      field("async_mode", &ShellExecRequest::async_mode, "Answer at once; see /v1/shell/view and /wait").defaulted(),
      field("timeout", &ShellExecRequest::timeout, "Seconds until the answer (status running); the command goes on")
          .min(0)
          .unlisted(),
      field("strict", &ShellExecRequest::strict, "Fail when exec_dir cannot be entered, instead of staying"),
      field("no_change_timeout", &ShellExecRequest::no_change_timeout,
            "Seconds without new output until the answer (status no_change_timeout); the command goes on"),
      field("hard_timeout", &ShellExecRequest::hard_timeout, "Seconds until the command is ended").min(0).unlisted(),
      field("preserve_symlinks", &ShellExecRequest::preserve_symlinks, "Keep symbolic links in the path of exec_dir").defaulted(),
      field("truncate", &ShellExecRequest::truncate, "Cut the middle of an output over 30000 characters").defaulted()};
};
template <>
struct Schema<ShellCommandResult> {
  static constexpr std::string_view name = "ShellCommandResult";
  static constexpr auto fields =
      std::tuple{field("session_id", &ShellCommandResult::session_id, "Session identifier"),
                 field("command", &ShellCommandResult::command, "The command"),
                 field("status", &ShellCommandResult::status, "Progress of the request, not its success").one_of(kShellStatus),
                 field("output", &ShellCommandResult::output, "Its output, once it has ended"),
                 field("console", &ShellCommandResult::console, "The command with its prompt and its output so far"),
                 field("exit_code", &ShellCommandResult::exit_code, "Exit code, when completed"),
                 end_field(&ShellCommandResult::end)};
};
template <>
struct Schema<ShellViewRequest> {
  static constexpr std::string_view name = "ShellViewRequest";
  static constexpr auto fields = std::tuple{field("id", &ShellViewRequest::id, "Session identifier")};
};
template <>
struct Schema<ShellViewResult> {
  static constexpr std::string_view name = "ShellViewResult";
  static constexpr auto fields =
      std::tuple{field("output", &ShellViewResult::output, "The terminal's text, including scrolled-out lines"),
                 field("session_id", &ShellViewResult::session_id, "Session identifier"),
                 field("console", &ShellViewResult::console, "The latest commands with their outputs"),
                 field("status", &ShellViewResult::status, "Status of the latest command").one_of(kShellStatus),
                 field("command", &ShellViewResult::command, "The latest command"),
                 field("exit_code", &ShellViewResult::exit_code, "Its exit code, when completed"),
                 end_field(&ShellViewResult::end)};
};
template <>
struct Schema<ShellWaitRequest> {
  static constexpr std::string_view name = "ShellWaitRequest";
  static constexpr auto fields = std::tuple{
      field("id", &ShellWaitRequest::id, "Session identifier"), field("seconds", &ShellWaitRequest::seconds, "Seconds to wait"),
      field("max_wait_seconds", &ShellWaitRequest::max_wait_seconds, "Seconds to wait at most")};
};
template <>
struct Schema<ShellWaitResult> {
  static constexpr std::string_view name = "ShellWaitResult";
  static constexpr auto fields =
      std::tuple{field("status", &ShellWaitResult::status, "Status of the latest command").one_of(kShellStatus),
                 end_field(&ShellWaitResult::end)};
};
template <>
struct Schema<ShellWriteToProcessRequest> {
  static constexpr std::string_view name = "ShellWriteToProcessRequest";
  static constexpr auto fields =
      std::tuple{field("id", &ShellWriteToProcessRequest::id, "Session identifier"),
                 field("input", &ShellWriteToProcessRequest::input, "What to type; \\u0003 is Ctrl-C"),
                 field("press_enter", &ShellWriteToProcessRequest::press_enter, "Press Enter after it")};
};
template <>
struct Schema<ShellWriteResult> {
  static constexpr std::string_view name = "ShellWriteResult";
  static constexpr auto fields =
      std::tuple{field("status", &ShellWriteResult::status, "Status of the latest command").one_of(kShellStatus)};
};
template <>
struct Schema<ShellKillProcessRequest> {
  static constexpr std::string_view name = "ShellKillProcessRequest";
  static constexpr auto fields = std::tuple{field("id", &ShellKillProcessRequest::id, "Session identifier")};
};
template <>
struct Schema<ShellKillResult> {
  static constexpr std::string_view name = "ShellKillResult";
  static constexpr auto fields =
      std::tuple{field("status", &ShellKillResult::status, "Status of the command").one_of(kShellStatus),
                 field("exit_code", &ShellKillResult::exit_code, "Exit code, if it had ended already"),
                 field("returncode", &ShellKillResult::returncode, "As exit_code"), end_field(&ShellKillResult::end)};
};
template <>
struct Schema<ShellCreateSessionRequest> {
  static constexpr std::string_view name = "ShellCreateSessionRequest";
  static constexpr auto fields = std::tuple{
      field("id", &ShellCreateSessionRequest::id, "Identifier; generated when absent or empty"),
      field("exec_dir", &ShellCreateSessionRequest::exec_dir, "Working directory"),
      field("no_change_timeout", &ShellCreateSessionRequest::no_change_timeout, "Default of the session's commands; 120"),
      field("preserve_symlinks", &ShellCreateSessionRequest::preserve_symlinks, "Keep symbolic links in the path of exec_dir")
          .defaulted(),
      isolation_field(&ShellCreateSessionRequest::isolation)};
};
template <>
struct Schema<ShellCreateSessionResponse> {
  static constexpr std::string_view name = "ShellCreateSessionResponse";
  static constexpr auto fields = std::tuple{field("session_id", &ShellCreateSessionResponse::session_id, "Session identifier"),
                                            field("working_dir", &ShellCreateSessionResponse::working_dir, "Working directory")};
};
template <>
struct Schema<ShellUpdateSessionRequest> {
  static constexpr std::string_view name = "ShellUpdateSessionRequest";
  static constexpr auto fields = std::tuple{
      field("id", &ShellUpdateSessionRequest::id, "Session identifier"),
      field("no_change_timeout", &ShellUpdateSessionRequest::no_change_timeout, "New default of the session's commands")};
};
template <>
struct Schema<ShellSessionInfo> {
  static constexpr std::string_view name = "ShellSessionInfo";
  static constexpr auto fields =
      std::tuple{field("working_dir", &ShellSessionInfo::working_dir, "Working directory"),
                 field("created_at", &ShellSessionInfo::created_at, "When it was made").format("date-time"),
                 field("last_used_at", &ShellSessionInfo::last_used_at, "When it was last used").format("date-time"),
                 field("age_seconds", &ShellSessionInfo::age_seconds, "Age in seconds"),
                 field("status", &ShellSessionInfo::status, "running or idle"),
                 field("current_command", &ShellSessionInfo::current_command, "The running command")};
};
template <>
struct Schema<ActiveShellSessionsResult> {
  static constexpr std::string_view name = "ActiveShellSessionsResult";
  static constexpr auto fields = std::tuple{field("sessions", &ActiveShellSessionsResult::sessions, "Sessions by identifier")};
};
template <>
struct Schema<ShellSessionStats> {
  static constexpr std::string_view name = "ShellSessionStats";
  static constexpr auto fields = std::tuple{
      field("total_sessions", &ShellSessionStats::total_sessions, "Sessions"),
      field("active_sessions", &ShellSessionStats::active_sessions, "Used in the last 5 minutes"),
      field("idle_sessions", &ShellSessionStats::idle_sessions, "The others"),
      field("max_sessions", &ShellSessionStats::max_sessions, "Most sessions at a time"),
      field("session_timeout", &ShellSessionStats::session_timeout, "Seconds until an idle session is closed; 0: never"),
      field("usage_ratio", &ShellSessionStats::usage_ratio, "total_sessions / max_sessions")};
};

}  // namespace caisson::routes
