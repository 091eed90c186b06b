// CodeService: code of one workspace. A run without state has a session of its own, in which nothing else runs before or after.
// Code that keeps its variables runs in a REPL (repl_service.h) or, for Python, in a notebook's kernel.
#pragma once

#include <memory>

#include "agent/services/code/repl_service.h"
#include "agent/services/code/run_code.h"
#include "agent/services/program/warm_pool.h"

namespace caisson::services {

class CodeService {
 public:
  CodeService(bridge::LauncherClient& launcher, const Config& config);

  [[nodiscard]] task<std::shared_ptr<const ToolInventory>> inventory();
  [[nodiscard]] task<json::Value> node_packages(std::string node);
  // Runs code without state. A run that takes too long, or whose client has left, is ended.
  [[nodiscard]] task<CodeOutcome> run(CodeJob job);
  // Compiles and runs a program in a session that shares nothing with the workspace.
  [[nodiscard]] task<Verdict> run_code(RunCodeJob job);
  [[nodiscard]] ReplService& node() { return node_; }
  [[nodiscard]] StatefulCode& stateful(Language language);
  // The REPLs of the language with this name.
  [[nodiscard]] ReplService& repls(std::string_view language) { return language == "javascript" ? node_ : python_; }

  // The policies have changed: ends prepared sessions and forgets which interpreters exist.
  void flush();
  // From now on serves this workspace; every session of the former one has ended.
  void serve_workspace(const std::string& name);
  [[nodiscard]] std::size_t sessions() const { return context_->quota->used; }
  [[nodiscard]] std::size_t prepared() const { return pool_.waiting(); }

 private:
  std::shared_ptr<CodeContext> context_;
  Toolchains toolchains_;
  WarmPool pool_;
  ReplService python_, node_;
};

}  // namespace caisson::services
