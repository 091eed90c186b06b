// Requests and responses of /v1/code, by the contract's names.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"

namespace caisson::routes {

struct CodeExecuteRequest {
  std::string language, code;
  std::optional<std::int64_t> timeout;
  std::optional<std::string> cwd;
  bool stateful = false;
  std::optional<std::string> session_id;
};
struct CodeExecuteResponse {
  std::string language, status;
  std::vector<json::Value> outputs;
  std::string code;
  std::optional<std::string> stdout_text, stderr_text;
  std::optional<std::int64_t> exit_code;
  std::optional<std::vector<std::string>> traceback;
  std::optional<std::string> session_id;
  std::optional<bridge::End> end;
};
struct CodeLanguageInfo {
  std::string language, description;
  std::optional<std::string> runtime_version;
  std::int64_t default_timeout = 30, max_timeout = 300;
  std::map<std::string, json::Value> details;
};
struct CodeInfoResponse {
  std::vector<CodeLanguageInfo> languages;
};

inline constexpr std::array<std::string_view, 2> kLanguageNames = {"python", "javascript"};

template <>
struct Schema<CodeExecuteRequest> {
  static constexpr std::string_view name = "CodeExecuteRequest";
  static constexpr auto fields =
      std::tuple{field("language", &CodeExecuteRequest::language, "Language of the code").one_of(kLanguageNames),
                 field("code", &CodeExecuteRequest::code, "Code to run"),
                 field("timeout", &CodeExecuteRequest::timeout, "Seconds until the run is ended; 30 when absent").min(1).max(300),
                 field("cwd", &CodeExecuteRequest::cwd, "Working directory; the workspace when absent"),
                 field("stateful", &CodeExecuteRequest::stateful, "Keep variables for the next request with the same session_id")
                     .defaulted(),
                 field("session_id", &CodeExecuteRequest::session_id,
                       "Session whose variables are used; implies stateful. An unknown one is created")};
};
template <>
struct Schema<CodeExecuteResponse> {
  static constexpr std::string_view name = "CodeExecuteResponse";
  static constexpr auto fields =
      std::tuple{field("language", &CodeExecuteResponse::language, "Language of the code").one_of(kLanguageNames),
                 field("status", &CodeExecuteResponse::status, "ok, error or timeout"),
                 field("outputs", &CodeExecuteResponse::outputs, "Streams, displays, result and error, as notebooks have them")
                     .object()
                     .defaulted(),
                 field("code", &CodeExecuteResponse::code, "The code"),
                 field("stdout", &CodeExecuteResponse::stdout_text, "Standard output"),
                 field("stderr", &CodeExecuteResponse::stderr_text, "Standard error"),
                 field("exit_code", &CodeExecuteResponse::exit_code, "Exit code; 124 after a timeout, 128 + number for a signal"),
                 field("traceback", &CodeExecuteResponse::traceback, "Lines of the error's traceback"),
                 field("session_id", &CodeExecuteResponse::session_id, "Session that keeps the variables"),
                 end_field(&CodeExecuteResponse::end)};
};
template <>
struct Schema<CodeLanguageInfo> {
  static constexpr std::string_view name = "CodeLanguageInfo";
  static constexpr auto fields =
      std::tuple{field("language", &CodeLanguageInfo::language, "Language").one_of(kLanguageNames),
                 field("description", &CodeLanguageInfo::description, "What runs it"),
                 field("runtime_version", &CodeLanguageInfo::runtime_version, "Version of the default interpreter"),
                 field("default_timeout", &CodeLanguageInfo::default_timeout, "Seconds, when a request names none")
                     .min(1)
                     .max(300)
                     .defaulted(),
                 field("max_timeout", &CodeLanguageInfo::max_timeout, "Seconds at most").min(1).max(300).defaulted(),
                 field("details", &CodeLanguageInfo::details, "versions: those that can be asked for").defaulted()};
};
template <>
struct Schema<CodeInfoResponse> {
  static constexpr std::string_view name = "CodeInfoResponse";
  static constexpr auto fields = std::tuple{field("languages", &CodeInfoResponse::languages, "Languages that can be run")};
};

}  // namespace caisson::routes
