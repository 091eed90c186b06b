// Request and response of POST /run_code, by the names of SandboxFusion's public API.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"

namespace caisson::routes {

struct RunCodeRequest {
  double compile_timeout = 10, run_timeout = 10;
  std::int64_t memory_limit_mb = -1;
  std::string code;
  std::optional<std::string> stdin_text;
  std::string language;
  std::optional<std::map<std::string, std::optional<std::string>>> files;
  std::optional<std::vector<std::string>> fetch_files, args;
};
struct CommandRunResult {
  std::string status;
  std::optional<double> execution_time;
  std::optional<std::int64_t> return_code;
  std::optional<std::string> stdout_text, stderr_text;
  std::optional<bridge::End> end;
};
struct RunCodeResponse {
  std::string status, message;
  std::optional<CommandRunResult> compile_result, run_result;
  std::optional<std::string> executor_pod_name;
  std::map<std::string, std::string> files;
};
struct RunJupyterRequest {
  std::vector<std::string> cells;
  double cell_timeout = 0, total_timeout = 45;
  std::int64_t memory_limit_mb = -1;
  std::optional<std::string> kernel;
  std::optional<std::map<std::string, std::optional<std::string>>> files;
  std::optional<std::vector<std::string>> fetch_files;
};
struct CellRunResult {
  std::string stdout_text, stderr_text;
  std::vector<json::Value> display, error;
};
struct RunJupyterResponse {
  std::string status, message;
  std::optional<CommandRunResult> driver;
  std::vector<CellRunResult> cells;
  std::optional<std::string> executor_pod_name;
  std::map<std::string, std::string> files;
};

inline constexpr std::array<std::string_view, 1> kNotebookKernels = {"python3"};
inline constexpr std::array<std::string_view, 3> kRunStatus = {"Success", "Failed", "SandboxError"};
inline constexpr std::array<std::string_view, 3> kCommandRunStatus = {"Finished", "Error", "TimeLimitExceeded"};

template <>
struct Schema<RunCodeRequest> {
  static constexpr std::string_view name = "RunCodeRequest";
  static constexpr auto fields =
      std::tuple{field("compile_timeout", &RunCodeRequest::compile_timeout, "Seconds until the compiler is ended").defaulted(),
                 field("run_timeout", &RunCodeRequest::run_timeout, "Seconds until the program is ended").defaulted(),
                 field("memory_limit_MB", &RunCodeRequest::memory_limit_mb,
                       "MiB that compiler and program may use, each with all of its processes; -1, or more than the policy "
                       "allows: as much as that")
                     .defaulted(),
                 field("code", &RunCodeRequest::code, "The program"),
                 field("stdin", &RunCodeRequest::stdin_text, "Standard input of the program"),
                 field("language", &RunCodeRequest::language, "Its language; an unknown one is answered with the list"),
                 field("files", &RunCodeRequest::files, "Files to create first: path to base64"),
                 field("fetch_files", &RunCodeRequest::fetch_files, "Paths of files to return afterwards"),
                 field("args", &RunCodeRequest::args, "More arguments of pytest")};
};
template <>
struct Schema<CommandRunResult> {
  static constexpr std::string_view name = "CommandRunResult";
  static constexpr auto fields =
      std::tuple{field("status", &CommandRunResult::status, "How the stage ended").one_of(kCommandRunStatus),
                 field("execution_time", &CommandRunResult::execution_time, "Seconds"),
                 field("return_code", &CommandRunResult::return_code, "Exit code; a signal as its negative number"),
                 field("stdout", &CommandRunResult::stdout_text, "Standard output"),
                 field("stderr", &CommandRunResult::stderr_text, "Standard error"),
                 end_field(&CommandRunResult::end)};
};
template <>
struct Schema<RunCodeResponse> {
  static constexpr std::string_view name = "RunCodeResponse";
  static constexpr auto fields =
      std::tuple{field("status", &RunCodeResponse::status, "Success: compiled, and exit code 0").one_of(kRunStatus),
                 field("message", &RunCodeResponse::message, "Why, for SandboxError"),
                 field("compile_result", &RunCodeResponse::compile_result, "The compiler"),
                 field("run_result", &RunCodeResponse::run_result, "The program"),
                 field("executor_pod_name", &RunCodeResponse::executor_pod_name, "Always null"),
                 field("files", &RunCodeResponse::files, "Fetched files that exist: path to base64").defaulted()};
};

template <>
struct Schema<RunJupyterRequest> {
  using T = RunJupyterRequest;
  static constexpr std::string_view name = "RunJupyterRequest";
  static constexpr auto fields = std::tuple{
      field("cells", &T::cells, "The cells, run in order; the next cell runs even if one raises"),
      field("cell_timeout", &T::cell_timeout, "Seconds until a cell, and the run with it, is ended; 0: total_timeout")
          .defaulted(),
      field("total_timeout", &T::total_timeout, "Seconds until the run is ended").defaulted(),
      field("memory_limit_MB", &T::memory_limit_mb, "MiB that the kernel may use; -1: as much as the policy allows").defaulted(),
      field("kernel", &T::kernel, "The default kernel").one_of(kNotebookKernels),
      field("files", &T::files, "Files to create first: path to base64"),
      field("fetch_files", &T::fetch_files, "Paths of files to return afterwards")};
};
template <>
struct Schema<CellRunResult> {
  using T = CellRunResult;
  static constexpr std::string_view name = "CellRunResult";
  static constexpr auto fields =
      std::tuple{field("stdout", &T::stdout_text, "Standard output"), field("stderr", &T::stderr_text, "Standard error"),
                 field("display", &T::display, "Its displays and its value, each by media type"),
                 field("error", &T::error, "Its error: ename, evalue, traceback")};
};
template <>
struct Schema<RunJupyterResponse> {
  using T = RunJupyterResponse;
  static constexpr std::string_view name = "RunJupyterResponse";
  static constexpr auto fields =
      std::tuple{field("status", &T::status, "Success: all cells were run, even if some raised").one_of(kRunStatus),
                 field("message", &T::message, "Why, for SandboxError"),
                 field("driver", &T::driver, "The run as a whole"),
                 field("cells", &T::cells, "The cells that ran").defaulted(),
                 field("executor_pod_name", &T::executor_pod_name, "Always null"),
                 field("files", &T::files, "Fetched files that exist: path to base64").defaulted()};
};

}  // namespace caisson::routes
