// What POST /run_code asks for: one program, compiled where its language needs it, and run, in a session that shares nothing with
// the workspace and has served nobody before. The steps are commands of the launcher's, with pipes of their own, so what one step
// writes is never taken for what another one says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/session/judge_languages.h"
#include "agent/session/warm_pool.h"

namespace caisson::session {

struct JudgeJob {
  std::string code, language, input;
  double compile_timeout_s = 10, run_timeout_s = 10;
  std::int64_t memory_mib = -1;              // of compiler and program, each with all of its processes; below 1: the policy's
  std::map<std::string, std::string> files;  // path to base64
  std::vector<std::string> fetch;
  std::vector<std::string> args;  // of pytest
  std::shared_ptr<const bool> client_gone;
};

struct StepResult {
  std::string status;  // Finished, TimeLimitExceeded
  double seconds = 0;
  std::optional<int> return_code;  // negative: the signal
  std::string out, err;
  bridge::End end;
};
struct Verdict {
  std::optional<StepResult> compiled, ran;
  std::map<std::string, std::string> files;  // path to base64
};

// What a session of the domain is narrowed to, in bytes, for so many MiB; 0: the policy's limit holds, which no job can raise.
[[nodiscard]] task<std::uint64_t> memory_limit(bridge::LauncherClient& launcher, std::string domain, std::int64_t mib);

// not_found: no such language here. Every other error, too, is none of the program's.
[[nodiscard]] task<Verdict> run_judge(std::shared_ptr<CodeContext> context, WarmPool& pool,
                                      std::shared_ptr<const ToolInventory> tools, JudgeJob job);

}  // namespace caisson::session
