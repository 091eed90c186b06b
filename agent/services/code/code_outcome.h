// A request to run code and its outcome, in the terms that /v1/code and /v1/nodejs share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/end.h"
#include "agent/services/program/toolchains.h"
#include "launcher/common/base/json.h"

namespace caisson::services {

struct CodeJob {
  Language language = Language::python;
  InstalledVersion interpreter;
  std::string code;
  std::string cwd;  // "": the workspace, or the REPL's current one
  std::map<std::string, std::string> files;
  std::string input;
  std::int64_t timeout_s = 30;
  std::shared_ptr<const bool> client_gone;  // becomes true when the client leaves; its run is then ended
};

struct CodeError {
  std::string name, value;
  std::vector<std::string> traceback;
};

struct CodeOutcome {
  std::string status;  // ok, error, timeout
  std::string out, err;
  std::vector<json::Value> outputs;  // as in notebooks: streams, displays, the result, the error
  std::optional<CodeError> error;
  int exit_code = 0;
  std::optional<std::int64_t> execution_count;
  std::string session_id;  // of a REPL
  std::string hint;
  std::optional<bridge::End> end;
};

// Combines the streams and the program's report. The report comes from the session, so only its shape is trusted. not_found: the
// directory or a file could not be used.
[[nodiscard]] Result<CodeOutcome> make_outcome(std::string out, std::string err, const json::Value& report, int exit_code);

// Runs code whose variables last: a REPL, or a notebook's kernel.
class StatefulCode {
 public:
  virtual ~StatefulCode() = default;
  // session_id "": a new session. An unknown id makes a session with that id, so that clients may choose theirs.
  [[nodiscard]] virtual task<CodeOutcome> execute(std::string session_id, CodeJob job) = 0;
};

}  // namespace caisson::services
