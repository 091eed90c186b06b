// Kernel: one notebook kernel in a confined session of its own (domain jupyter), behind agent/inside/kernel_bridge.py. Runs one
// cell at a time. What the session says is untrusted: outputs are bounded (KernelOutputs), and a bridge that does not answer in
// time, however its kernel stopped it, ends with its session.
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
  std::string cwd;  // "": where the kernel is
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
  struct Place {
    std::string workspace;  // of the launcher's
    std::string label;      // for the audit log
    std::size_t most_output_bytes = 8u << 20;
    std::shared_ptr<OutputBudget> budget;  // absent: nobody else wants room
    bool isolated = false;                 // in a private session, which ends with the agent
    std::uint64_t memory_bytes = 0;        // of the session; 0: as much as the policy allows
  };

  // What interpreters a session of the domain finds. Makes a session for the question.
  [[nodiscard]] static task<KernelCatalog> ask_catalog(bridge::LauncherClient& launcher, Place place);
  // Returns when the kernel has answered. not_found: cwd or the interpreter are not there.
  // files: put there before. invalid_argument: one cannot be.
  [[nodiscard]] static task<Pointer> start(bridge::LauncherClient& launcher, Place place, KernelSpec spec, std::string cwd,
                                           std::optional<PackedFiles> files = std::nullopt);

  // Goes on with one that was kept, once settle() has returned.
  [[nodiscard]] static Pointer adopt(bridge::LauncherClient& launcher, Place place, KernelSpec spec, std::string cwd,
                                     std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started);
  // Waits for the end of the cell that runs, whose outputs are nobody's. limit: how long it may still run. Error: the kernel does
  // not answer, and has been ended.
  [[nodiscard]] static task<void> settle(Pointer self, std::chrono::nanoseconds limit);
  [[nodiscard]] const Worker::Pointer& worker() const { return worker_; }

  // Runs a cell; nobody else's may be under way. A cell that fails, is too slow or ends its kernel is a result. Error: it was not
  // run.
  [[nodiscard]] static task<KernelResult> execute(Pointer self, KernelCell cell);
  // Changes its directory. not_found: it cannot.
  [[nodiscard]] static task<void> enter(Pointer self, std::string cwd);
  // A regular file of at most so many bytes; relative paths start where the kernel did. not_found: none.
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
  Kernel(KernelSpec spec, std::string cwd, const Place& place)
      : spec_(std::move(spec)), cwd_(std::move(cwd)), most_output_bytes_(place.most_output_bytes), budget_(place.budget) {}
  [[nodiscard]] static WorkerOptions options_for(const Pointer& self, const Place& place);
  [[nodiscard]] static task<Worker::Pointer> start_worker(bridge::LauncherClient& launcher, Place place, std::string cwd,
                                                          WorkerOptions options);
  void take(const frames::Frame& event);
  void ended();
  // The kernel's end as a cell's answer.
  void report_death(KernelResult& result, const json::Value& died);

  const KernelSpec spec_;
  const std::string cwd_;
  const std::size_t most_output_bytes_;
  const std::shared_ptr<OutputBudget> budget_;
  std::string mark_;  // of one that was adopted
  Worker::Pointer worker_;
  std::optional<KernelOutputs> outputs_;  // of the cell that runs
  std::int64_t cell_ = 0;                 // its number
  bool died_ = false;
  std::function<void()> on_end_;
};

}  // namespace caisson::services
