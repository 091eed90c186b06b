// JupyterService: the notebook sessions of one workspace, each a kernel in a confined session. Decisions where the contract is
// silent:
// - execute with an unknown session_id makes that session (clients name one without creating it); without one (or with "") it
//   makes a session and returns its id for further use. Few of these implicit sessions are kept until a request names them: the
//   longest idle one makes room. At the cap for all sessions the longest idle one is closed, never a busy one.
// - "python3" is the default kernel, whatever its version; a session keeps its kernel, and naming another one is an error.
// - cells of one session run in the order in which they came; the timeout of each begins with its turn. A cell is not run if its
//   client leaves before its turn.
// - a kernel that dies ends its session; the next cell under that id starts anew.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/services/common/quota.h"
#include "agent/services/common/roster.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/common/session_table.h"
#include "agent/services/common/turns.h"
#include "agent/services/notebook/kernel_pool.h"

namespace caisson::services {

struct JupyterSession {
  explicit JupyterSession(const asio::any_io_executor& executor) : turns(executor) {}
  std::string id;
  std::string kernel_name;  // as the client named it
  std::string kernel_path;  // its interpreter
  std::string cwd;          // to start in
  bool implicit = false;
  std::int64_t created_ns = 0, last_used_ns = 0;  // real time, for clients
  bridge::Clock::time_point last_used;
  Kernel::Pointer kernel;     // absent until the first turn
  std::int64_t until_ns = 0;  // real time: deadline of the running cell; 0: none runs
  Turns turns;
  bool closed = false;
  std::string why_closed;

  void touch();
  // Keeps its state for a later agent, once there is a kernel.
  void save();
  [[nodiscard]] bool busy() const { return turns.size() > 0; }
};

class JupyterService {
 public:
  using SessionPtr = std::shared_ptr<JupyterSession>;

  JupyterService(bridge::LauncherClient& launcher, Config config);
  ~JupyterService();
  JupyterService(const JupyterService&) = delete;
  JupyterService& operator=(const JupyterService&) = delete;

  struct Target {
    std::string session_id;   // "": generated
    std::string kernel_name;  // "": the default
    std::string cwd;          // "": the workspace; relative ones start there
  };
  struct Request {
    Target target;
    std::string code;
    int timeout_seconds = 30;
    std::function<bool()> gone;  // whether the client has left; absent: never
  };
  struct Answer {
    std::string session_id, kernel_name;
    KernelResult result;
  };
  // Used by /v1/jupyter/execute, and by /v1/code/execute for python with state. Errors: it was not run.
  [[nodiscard]] task<Answer> execute(Request request);
  // The session of that id, or a new one, with its kernel started.
  [[nodiscard]] task<SessionPtr> create(Target target);
  [[nodiscard]] SessionPtr find(const std::string& id) const { return table_.find(id); }
  [[nodiscard]] std::vector<SessionPtr> sessions() const { return table_.all(); }
  [[nodiscard]] task<void> close(SessionPtr session, std::string reason);

  // The installed kernels. The answer is kept once there are any.
  [[nodiscard]] task<KernelCatalog> catalog();
  // The name of the default kernel: PYTHON_VERSION's where that is installed.
  [[nodiscard]] std::string default_name(const KernelCatalog& catalog) const;
  // A hint about installing further Pythons, if the name is that of a missing one; nullopt also before the catalog is known.
  [[nodiscard]] std::optional<std::string> hint_for(const std::string& kernel_name) const;
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] bridge::LauncherClient& launcher() { return launcher_; }

  // A default kernel for one notebook (run_notebook.h), in a private session. At most max_jupyter_sessions of these run at a
  // time; further notebooks wait for their turn.
  struct Alone {
    Kernel::Pointer kernel;
    std::shared_ptr<void> slot;
  };
  [[nodiscard]] task<Alone> start_alone(std::string cwd, PackedFiles files, std::uint64_t memory_bytes,
                                        std::shared_ptr<const bool> gone);

  // Prepares kernels before the first request. A failure is logged and is no error: a request will report it.
  [[nodiscard]] task<void> prepare();
  // Continues with a kernel of the previous agent. Error: that is impossible; the next cell with its id reports the loss.
  [[nodiscard]] task<void> take_up(const bridge::LeftSession& left, Keep::Left kept);

  // From now on sessions are made in this workspace. No session lives when it is called.
  void serve_workspace(std::string name, std::string home);
  // The policies have changed: ends prepared kernels and forgets which kernels exist.
  void flush();

 private:
  [[nodiscard]] task<SessionPtr> obtain(Target target);
  [[nodiscard]] Result<KernelSpec> resolve(const KernelCatalog& known, std::string name) const;
  [[nodiscard]] task<void> ensure_kernel(SessionPtr session);
  [[nodiscard]] Kernel::Setup setup_of(std::string label) const;
  [[nodiscard]] const std::string& workspace();
  void keep_ready(const KernelCatalog& catalog);
  void forget(const SessionPtr& session, std::string why);
  void forget_at_end(const SessionPtr& session);
  static task<void> settle(SessionPtr session, std::unique_ptr<Turns::Place> turn, std::chrono::nanoseconds limit);
  static task<void> await_turn(SessionPtr session, Turns::Place& place);

  bridge::LauncherClient& launcher_;
  Config config_;
  KernelPool pool_;
  SessionTable<JupyterSession> table_;
  std::optional<KernelCatalog> catalog_;
  std::uint64_t generation_ = 0;  // of the catalog: the answer to an older question is not kept
  Turns asking_;                  // for the catalog
  Quota alone_;                   // for kernels of start_alone()
  std::set<std::string> lost_;    // ids of kernels that were lost with the previous agent, until a cell names them
  Roster roster_;
};

}  // namespace caisson::services
