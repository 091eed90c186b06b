// Requests and responses of /v1/nodejs, by the contract's names. Requests use seconds, descriptions of a session milliseconds.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"

namespace caisson::routes {

struct NodeJSExecuteRequest {
  std::string code;
  std::optional<std::int64_t> timeout = 30;
  std::optional<std::string> stdin_text;
  std::optional<std::map<std::string, std::optional<std::string>>> files;
  std::optional<bool> stateful = false;
  std::optional<std::string> session_id, cwd, version;
};
struct NodeJSOutput {
  std::string output_type;
  std::optional<std::string> name, text, ename, evalue;
  std::optional<std::vector<std::string>> traceback;
  std::optional<std::map<std::string, json::Value>> data, metadata;
};
struct NodeJSExecuteResponse {
  std::string language = "javascript", status;
  std::optional<std::int64_t> execution_count;
  std::vector<NodeJSOutput> outputs;
  std::string code, stdout_text, stderr_text;
  std::int64_t exit_code = 0;
  std::optional<std::string> session_id;
  std::optional<bridge::End> end;
};
struct NodeJSPackageInfo {
  std::string name, version;
};
struct NodeJSRuntimeInfo {
  std::string node_version, npm_version;
  std::vector<std::string> supported_languages = {"javascript"};
  std::string description;
  std::optional<std::string> runtime_directory, global_npm_directory;
  std::vector<NodeJSPackageInfo> runtime_packages, global_packages;
  std::optional<std::string> error;
  std::vector<std::string> available_versions;
  std::optional<std::string> current_version;
};
struct NodeJSSessionInfo {
  std::string session_id, cwd;
  double created_at = 0, last_used = 0;
  std::int64_t max_idle_time = 0, age_seconds = 0;
  std::string state;
};
struct NodeJSCreateSessionRequest {
  std::optional<std::string> session_id, cwd;
  std::optional<std::int64_t> max_idle_time = 86'400;
};
struct NodeJSCreateSessionResponse {
  std::string session_id;
  bool created = false;
  std::optional<std::string> message;
  std::optional<NodeJSSessionInfo> session;
};
struct NodeJSSessionListResponse {
  std::map<std::string, NodeJSSessionInfo> sessions;
};
struct NodeJSSessionResponse {
  NodeJSSessionInfo session;
};
struct NodeJSUpdateSessionRequest {
  std::optional<std::int64_t> max_idle_time;
  std::optional<std::string> cwd;
};
struct NodeJSUpdateSessionResponse {
  bool updated = false;
  NodeJSSessionInfo session;
};
struct NodeJSDeleteSessionResponse {
  bool deleted = false;
};

inline constexpr std::array<std::string_view, 1> kJavaScript = {"javascript"};

template <>
struct Schema<NodeJSExecuteRequest> {
  static constexpr std::string_view name = "NodeJSExecuteRequest";
  static constexpr auto fields = std::tuple{
      field("code", &NodeJSExecuteRequest::code, "JavaScript to run"),
      field("timeout", &NodeJSExecuteRequest::timeout, "Seconds until the run is ended").min(1).max(300).defaulted(),
      field("stdin", &NodeJSExecuteRequest::stdin_text, "Standard input of the program"),
      field("files", &NodeJSExecuteRequest::files,
            "Files to make before: path to text. Without cwd and state in a directory of this run, which is then its cwd"),
      field("stateful", &NodeJSExecuteRequest::stateful, "Keep variables for the next request with the same session_id")
          .defaulted(),
      field("session_id", &NodeJSExecuteRequest::session_id,
            "Session whose variables are used; implies stateful. An unknown one is created"),
      field("cwd", &NodeJSExecuteRequest::cwd, "Working directory; the workspace, or the session's, when absent"),
      field("version", &NodeJSExecuteRequest::version, "Version of Node.js, such as node22 or 22; the default when absent")};
};
template <>
struct Schema<NodeJSOutput> {
  static constexpr std::string_view name = "NodeJSOutput";
  static constexpr auto fields = std::tuple{field("output_type", &NodeJSOutput::output_type, "stream, error or execute_result"),
                                            field("name", &NodeJSOutput::name, "stdout or stderr"),
                                            field("text", &NodeJSOutput::text, "Text of a stream"),
                                            field("ename", &NodeJSOutput::ename, "Name of an error"),
                                            field("evalue", &NodeJSOutput::evalue, "The message of the error"),
                                            field("traceback", &NodeJSOutput::traceback, "Lines of the error's stack"),
                                            field("data", &NodeJSOutput::data, "A result by media type"),
                                            field("metadata", &NodeJSOutput::metadata, "About the data")};
};
template <>
struct Schema<NodeJSExecuteResponse> {
  static constexpr std::string_view name = "NodeJSExecuteResponse";
  static constexpr auto fields = std::tuple{
      field("language", &NodeJSExecuteResponse::language, "Always javascript").one_of(kJavaScript),
      field("status", &NodeJSExecuteResponse::status, "ok, error or timeout"),
      field("execution_count", &NodeJSExecuteResponse::execution_count, "Number of runs in the session so far"),
      field("outputs", &NodeJSExecuteResponse::outputs, "Streams, result and error").defaulted(),
      field("code", &NodeJSExecuteResponse::code, "The code"),
      field("stdout", &NodeJSExecuteResponse::stdout_text, "Standard output").defaulted(),
      field("stderr", &NodeJSExecuteResponse::stderr_text, "Standard error").defaulted(),
      field("exit_code", &NodeJSExecuteResponse::exit_code, "Exit code; 124 after a timeout, 128 + number for a signal"),
      field("session_id", &NodeJSExecuteResponse::session_id, "Session that keeps the variables"),
      end_field(&NodeJSExecuteResponse::end)};
};
template <>
struct Schema<NodeJSPackageInfo> {
  static constexpr std::string_view name = "NodeJSPackageInfo";
  static constexpr auto fields = std::tuple{field("name", &NodeJSPackageInfo::name, "Package"),
                                            field("version", &NodeJSPackageInfo::version, "Its version")};
};
template <>
struct Schema<NodeJSRuntimeInfo> {
  static constexpr std::string_view name = "NodeJSRuntimeInfo";
  static constexpr auto fields = std::tuple{
      field("node_version", &NodeJSRuntimeInfo::node_version, "Version of Node.js"),
      field("npm_version", &NodeJSRuntimeInfo::npm_version, "Version of npm; empty when there is none"),
      field("supported_languages", &NodeJSRuntimeInfo::supported_languages, "What it runs"),
      field("description", &NodeJSRuntimeInfo::description, "What it is"),
      field("runtime_directory", &NodeJSRuntimeInfo::runtime_directory, "Directory of the interpreter"),
      field("global_npm_directory", &NodeJSRuntimeInfo::global_npm_directory, "Directory of global packages"),
      field("runtime_packages", &NodeJSRuntimeInfo::runtime_packages, "Packages that every run can require").defaulted(),
      field("global_packages", &NodeJSRuntimeInfo::global_packages, "Packages of the global directory").defaulted(),
      field("error", &NodeJSRuntimeInfo::error, "Why the packages could not be listed"),
      field("available_versions", &NodeJSRuntimeInfo::available_versions, "Versions that can be asked for").defaulted(),
      field("current_version", &NodeJSRuntimeInfo::current_version, "The version that these fields describe")};
};
template <>
struct Schema<NodeJSSessionInfo> {
  static constexpr std::string_view name = "NodeJSSessionInfo";
  static constexpr auto fields =
      std::tuple{field("session_id", &NodeJSSessionInfo::session_id, "Session identifier"),
                 field("cwd", &NodeJSSessionInfo::cwd, "Working directory"),
                 field("created_at", &NodeJSSessionInfo::created_at, "When it was made, in milliseconds since 1970"),
                 field("last_used", &NodeJSSessionInfo::last_used, "When it was last used, in milliseconds since 1970"),
                 field("max_idle_time", &NodeJSSessionInfo::max_idle_time, "Milliseconds without use after which it ends"),
                 field("age_seconds", &NodeJSSessionInfo::age_seconds, "Seconds since it was last used"),
                 field("state", &NodeJSSessionInfo::state, "IDLE or EXECUTING")};
};
template <>
struct Schema<NodeJSCreateSessionRequest> {
  static constexpr std::string_view name = "NodeJSCreateSessionRequest";
  static constexpr auto fields =
      std::tuple{field("session_id", &NodeJSCreateSessionRequest::session_id, "Identifier; generated when absent or empty"),
                 field("cwd", &NodeJSCreateSessionRequest::cwd, "Working directory; the workspace when absent"),
                 field("max_idle_time", &NodeJSCreateSessionRequest::max_idle_time, "Seconds without use after which it ends")
                     .min(60)
                     .max(86'400)
                     .defaulted()};
};
template <>
struct Schema<NodeJSCreateSessionResponse> {
  static constexpr std::string_view name = "NodeJSCreateSessionResponse";
  static constexpr auto fields = std::tuple{field("session_id", &NodeJSCreateSessionResponse::session_id, "Session identifier"),
                                            field("created", &NodeJSCreateSessionResponse::created, "Whether it is new"),
                                            field("message", &NodeJSCreateSessionResponse::message, "Whether it existed before"),
                                            field("session", &NodeJSCreateSessionResponse::session, "The session")};
};
template <>
struct Schema<NodeJSSessionListResponse> {
  static constexpr std::string_view name = "NodeJSSessionListResponse";
  static constexpr auto fields =
      std::tuple{field("sessions", &NodeJSSessionListResponse::sessions, "Sessions by identifier").defaulted()};
};
template <>
struct Schema<NodeJSSessionResponse> {
  static constexpr std::string_view name = "NodeJSSessionResponse";
  static constexpr auto fields = std::tuple{field("session", &NodeJSSessionResponse::session, "The session")};
};
template <>
struct Schema<NodeJSUpdateSessionRequest> {
  static constexpr std::string_view name = "NodeJSUpdateSessionRequest";
  static constexpr auto fields =
      std::tuple{field("max_idle_time", &NodeJSUpdateSessionRequest::max_idle_time, "Seconds without use after which it ends")
                     .min(60)
                     .max(86'400),
                 field("cwd", &NodeJSUpdateSessionRequest::cwd, "Working directory from now on")};
};
template <>
struct Schema<NodeJSUpdateSessionResponse> {
  static constexpr std::string_view name = "NodeJSUpdateSessionResponse";
  static constexpr auto fields =
      std::tuple{field("updated", &NodeJSUpdateSessionResponse::updated, "Whether anything was changed"),
                 field("session", &NodeJSUpdateSessionResponse::session, "The session")};
};
template <>
struct Schema<NodeJSDeleteSessionResponse> {
  static constexpr std::string_view name = "NodeJSDeleteSessionResponse";
  static constexpr auto fields = std::tuple{field("deleted", &NodeJSDeleteSessionResponse::deleted, "Whether it existed")};
};

}  // namespace caisson::routes
