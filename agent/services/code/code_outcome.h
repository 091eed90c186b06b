// What a client asks to be run, and what became of it, in the terms that /v1/code and /v1/nodejs share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/end.h"
#include "agent/services/program/toolchains.h"
#include "launcher/base/json.h"

namespace caisson::services {

struct CodeJob {
  Language language = Language::python;
  InstalledVersion interpreter;
  std::string code;
  std::string cwd;  // "": the workspace, or where the REPL is
  std::map<std::string, std::string> files;
  std::string input;
  std::int64_t timeout_s = 30;
  std::shared_ptr<const bool> client_gone;  // becomes true; a run that nobody can read any more is ended
};

struct CodeError {
  std::string name, value;
  std::vector<std::string> traceback;
};

struct CodeOutcome {
  std::string status;  // ok, error, timeout
  std::string out, err;
  std::vector<json::Value> outputs;  // as notebooks have them: streams, what was shown, the result, the error
  std::optional<CodeError> error;
  int exit_code = 0;
  std::optional<std::int64_t> execution_count;
  std::string session_id;  // of a REPL
  std::string hint;
  std::optional<bridge::End> end;
};

// Puts together what the streams hold and what the program said; `report` comes from the session, so nothing of it is believed
// but its shape. not_found: the program was refused its directory or a file.
[[nodiscard]] Result<CodeOutcome> make_outcome(std::string out, std::string err, const json::Value& report, int exit_code);

// Who runs code whose variables last: a REPL, or a notebook's kernel.
class StatefulCode {
 public:
  virtual ~StatefulCode() = default;
  // session_id "": a new one. One that is not there is made, so that clients may choose theirs.
  [[nodiscard]] virtual task<CodeOutcome> execute(std::string session_id, CodeJob job) = 0;
};

}  // namespace caisson::services
