// Requests and responses of /v1/jupyter, by the contract's names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"
#include "agent/services/notebook/kernel_outputs.h"

namespace caisson::routes {

struct JupyterExecuteRequest {
  std::string code;
  std::optional<std::int64_t> timeout = 30;
  std::optional<std::string> kernel_name, session_id, cwd;
};
struct JupyterExecuteResponse {
  std::string kernel_name;
  std::optional<std::string> session_id;
  std::string status;
  std::optional<std::int64_t> execution_count;
  std::vector<services::KernelOutput> outputs;
  std::string code;
  std::optional<std::string> msg_id;
  std::optional<bridge::End> end;
};
struct JupyterInfoResponse {
  std::string default_kernel;
  std::vector<std::string> available_kernels;
  std::int64_t active_sessions = 0, session_timeout_seconds = 0, max_sessions = 0;
  std::string description, kernel_detection;
};
struct JupyterSessionInfo {
  std::string kernel_name;
  double last_used = 0;
  std::int64_t age_seconds = 0;
};
struct ActiveJupyterSessions {
  std::map<std::string, JupyterSessionInfo> sessions;
};
struct JupyterCreateSessionRequest {
  std::optional<std::string> session_id, kernel_name, cwd;
};
struct JupyterCreateSessionResponse {
  std::string session_id, kernel_name, message;
};

template <>
struct Schema<services::KernelOutput> {
  using T = services::KernelOutput;
  static constexpr std::string_view name = "JupyterOutput";
  static constexpr auto fields =
      std::tuple{field("output_type", &T::output_type, "stream, execute_result, display_data or error"),
                 field("name", &T::name, "stdout or stderr, of a stream"),
                 field("text", &T::text, "Text of a stream"),
                 field("data", &T::data, "Representations by media type, images in base64").object(),
                 field("metadata", &T::metadata, "Metadata of the representations").object(),
                 field("execution_count", &T::execution_count, "Execution count of an execute_result"),
                 field("ename", &T::ename, "Name of the exception"),
                 field("evalue", &T::evalue, "Its text"),
                 field("traceback", &T::traceback, "Its traceback, with terminal colours")};
};
template <>
struct Schema<JupyterExecuteRequest> {
  using T = JupyterExecuteRequest;
  static constexpr std::string_view name = "JupyterExecuteRequest";
  static constexpr auto fields = std::tuple{
      field("code", &T::code, "Python code to execute"),
      field("timeout", &T::timeout, "Seconds until the cell is interrupted, and killed if that has no effect")
          .min(1)
          .max(300)
          .defaulted(),
      field("kernel_name", &T::kernel_name, "One of available_kernels; the default kernel when absent"),
      field("session_id", &T::session_id, "Session whose variables the code sees; an unknown one is created; absent: a new one"),
      field("cwd", &T::cwd, "Directory that the kernel changes to before the code; relative ones start in the workspace")};
};
template <>
struct Schema<JupyterExecuteResponse> {
  using T = JupyterExecuteResponse;
  static constexpr std::string_view name = "JupyterExecuteResponse";
  static constexpr auto fields = std::tuple{field("kernel_name", &T::kernel_name, "Name of the kernel"),
                                            field("session_id", &T::session_id, "Session of this kernel"),
                                            field("status", &T::status, "ok, error or timeout"),
                                            field("execution_count", &T::execution_count, "Execution count of the kernel"),
                                            field("outputs", &T::outputs, "Outputs in their order"),
                                            field("code", &T::code, "The executed code"),
                                            field("msg_id", &T::msg_id, "Id of the request to the kernel"),
                                            field("end", &T::end, "Why the cell is over")};
};
template <>
struct Schema<JupyterInfoResponse> {
  using T = JupyterInfoResponse;
  static constexpr std::string_view name = "JupyterInfoResponse";
  static constexpr auto fields =
      std::tuple{field("default_kernel", &T::default_kernel, "Kernel for requests without a name"),
                 field("available_kernels", &T::available_kernels, "Names for requests"),
                 field("active_sessions", &T::active_sessions, "Living sessions of this workspace"),
                 field("session_timeout_seconds", &T::session_timeout_seconds, "Idle sessions end after that; 0: never"),
                 field("max_sessions", &T::max_sessions, "Sessions at a time; the longest idle one makes room"),
                 field("description", &T::description, "What this is"),
                 field("kernel_detection", &T::kernel_detection, "How the kernels were found")};
};
template <>
struct Schema<JupyterSessionInfo> {
  using T = JupyterSessionInfo;
  static constexpr std::string_view name = "SessionInfo";
  static constexpr auto fields = std::tuple{field("kernel_name", &T::kernel_name, "Name of the kernel"),
                                            field("last_used", &T::last_used, "Seconds since 1970"),
                                            field("age_seconds", &T::age_seconds, "Seconds since its creation")};
};
template <>
struct Schema<ActiveJupyterSessions> {
  static constexpr std::string_view name = "ActiveSessionsResult";
  static constexpr auto fields = std::tuple{field("sessions", &ActiveJupyterSessions::sessions, "Living sessions by their id")};
};
template <>
struct Schema<JupyterCreateSessionRequest> {
  using T = JupyterCreateSessionRequest;
  static constexpr std::string_view name = "JupyterCreateSessionRequest";
  static constexpr auto fields = std::tuple{
      field("session_id", &T::session_id, "Id of the session; generated when absent. An existing session of that id is returned"),
      field("kernel_name", &T::kernel_name, "One of available_kernels; the default kernel when absent"),
      field("cwd", &T::cwd, "Directory to start in; relative ones start in the workspace")};
};
template <>
struct Schema<JupyterCreateSessionResponse> {
  using T = JupyterCreateSessionResponse;
  static constexpr std::string_view name = "JupyterCreateSessionResponse";
  static constexpr auto fields =
      std::tuple{field("session_id", &T::session_id, "Id of the session"),
                 field("kernel_name", &T::kernel_name, "Name of its kernel"), field("message", &T::message, "What was done")};
};

}  // namespace caisson::routes
