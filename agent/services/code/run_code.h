// POST /run_code: compiles a program, if its language needs it, and runs it, in a session that shares nothing with the workspace
// and has run nothing before. Each stage is a command of its own with its own pipes, so the output of one is never taken for that
// of another.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/services/code/run_code_languages.h"
#include "agent/services/program/warm_pool.h"

namespace caisson::services {

struct RunCodeJob {
  std::string code, language, input;
  double compile_timeout_s = 10, run_timeout_s = 10;
  std::int64_t memory_mib = -1;              // for compiler and program, each with all of its processes; below 1: the policy's
  std::map<std::string, std::string> files;  // path to base64
  std::vector<std::string> fetch;
  std::vector<std::string> args;  // of pytest
  std::shared_ptr<const bool> client_gone;
};

struct StageResult {
  std::string status;  // Finished, TimeLimitExceeded
  double seconds = 0;
  std::optional<int> return_code;  // negative: the signal
  std::string out, err;
  bridge::End end;
};
struct Verdict {
  std::optional<StageResult> compiled, ran;
  std::map<std::string, std::string> files;  // path to base64
};

// not_found: the language is not available. No error is the program's own.
[[nodiscard]] task<Verdict> compile_and_run(std::shared_ptr<CodeContext> context, WarmPool& pool,
                                            std::shared_ptr<const ToolInventory> tools, RunCodeJob job);

}  // namespace caisson::services
