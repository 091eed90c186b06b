// Kernel: one notebook kernel in a confined session of its own (domain jupyter), behind agent/inside/kernel_bridge.py. Runs one
// cell at a time. The session is untrusted: outputs are bounded (KernelOutputs), and a bridge that does not answer in time, for
// whatever reason, ends with its session.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/services/common/output_buffer.h"
#include "agent/services/notebook/kernel_outputs.h"
#include "agent/services/program/packed_files.h"
#include "agent/services/program/supervisor.h"
#include "agent/services/program/worker.h"

namespace caisson::services {

struct KernelSpec {
  std::string name;     // "python3.13"
  std::string version;  // "3.13.5"
  std::string path;     // of the interpreter, inside the session
};
struct KernelCatalog {
  std::vector<KernelSpec> kernels;   // the first one is Debian's, if it has one
  std::vector<std::string> without;  // interpreters that have no ipykernel
};

struct KernelCell {
  std::string code;
  int timeout_seconds = 30;
  std::string cwd;  // "": the kernel's current directory
};
struct KernelResult {
  std::string status;  // ok, error, timeout
  std::vector<KernelOutput> outputs;
  std::optional<std::int64_t> execution_count;
  std::string msg_id;
  std::optional<int> exit_code;  // the kernel's own, when it ended in this cell: 128 + number for a signal
  std::string hint;              // what the status does not say
  bridge::End end;
};

class Kernel {
 public:
  using Pointer = std::shared_ptr<Kernel>;
  struct Setup {
    std::string workspace;
    std::string label;  // for the audit log
    std::size_t most_output_bytes = 8u << 20;
    std::shared_ptr<OutputBudget> budget;  // absent: room is not shared
    bool isolated = false;                 // in a private session, which ends with the agent
    std::uint64_t memory_bytes = 0;        // limit of the session; 0: the policy's
  };

  // The interpreters that a session of the domain finds. Makes a session to ask.
  [[nodiscard]] static task<KernelCatalog> ask_catalog(bridge::LauncherClient& launcher, Setup setup);
  // Returns when the kernel has answered. not_found: cwd or the interpreter does not exist. unavailable: it cannot start. files:
  // written before it starts. invalid_argument: one cannot be written.
  [[nodiscard]] static task<Pointer> start(bridge::LauncherClient& launcher, Setup setup, KernelSpec spec, std::string cwd,
                                           std::optional<PackedFiles> files = std::nullopt);

  // Continues with a kept kernel, ready once settle() has returned.
  [[nodiscard]] static Pointer adopt(bridge::LauncherClient& launcher, Setup setup, KernelSpec spec, std::string cwd,
                                     std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started);
  // Waits for the end of the running cell and drops its outputs. limit: the cell's remaining time. Error: the kernel does not
  // answer, and has been ended.
  [[nodiscard]] static task<void> settle(Pointer self, std::chrono::nanoseconds limit);
  // Once it has started.
  [[nodiscard]] Program& program() const { return *worker_->program(); }

  // Runs a cell; no other may be under way. A cell that fails, is too slow or ends its kernel is a result. Error: it was not run.
  [[nodiscard]] static task<KernelResult> execute(Pointer self, KernelCell cell);
  // Changes its directory. not_found: it cannot be entered.
  [[nodiscard]] static task<void> enter(Pointer self, std::string cwd);
  // The content of a regular file of at most `most` bytes; relative paths start at the kernel's first directory. not_found: there
  // is none.
  [[nodiscard]] static task<std::string> fetch(Pointer self, std::string path, std::size_t most);
  [[nodiscard]] static task<void> close(Pointer self, std::string reason);
  // Called once when it ends by itself.
  void on_end(std::function<void()> told) { on_end_ = std::move(told); }

  [[nodiscard]] bool alive() const { return worker_ && worker_->alive() && !died_; }
  [[nodiscard]] const KernelSpec& spec() const { return spec_; }
  [[nodiscard]] const std::string& cwd() const { return cwd_; }

  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

 private:
  Kernel(bridge::LauncherClient& launcher, Setup setup, KernelSpec spec, std::string cwd);
  // Puts the protocol on each program that the supervisor starts or takes up.
  static void attend(const Pointer& self);
  // The first exchange with a bridge that has just started: the files, then the kernel itself.
  [[nodiscard]] static task<void> greet(Pointer self, std::optional<PackedFiles> files);
  void take(const frames::Frame& event);
  void ended();
  // The kernel's end as a cell's answer.
  void report_death(KernelResult& result, const json::Value& died);

  const KernelSpec spec_;
  const std::string cwd_;
  const std::size_t most_output_bytes_;
  const std::shared_ptr<OutputBudget> budget_;
  std::string mark_;  // of an adopted one
  Worker::Pointer worker_;
  Supervisor supervisor_;
  std::optional<KernelOutputs> outputs_;  // of the cell that runs
  std::int64_t cell_ = 0;                 // its number
  bool died_ = false;
  std::function<void()> on_end_;
};

}  // namespace caisson::services
