// JupyterService: the notebook sessions of one workspace, each a kernel in a confined session. Decisions where the contract is
// silent:
// - execute with an unknown session_id makes that session (clients name one without creating it); without one (or with "") it
// makes
//   a session and returns its id, with which the kernel can be used again. Of such sessions that nobody has come back to there
//   are few: the one idle for longest makes room. At the cap for all sessions the longest idle one is closed, never one that is
//   busy.
// - "python3" is the default kernel, whatever its version; a session keeps its kernel, and naming another one is an error.
// - cells of one session run in the order in which they came; the timeout of each begins with its turn. A client that has left
//   before its turn is not run.
// - a kernel that dies ends its session; the next cell under that id starts anew.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/services/common/config.h"
#include "agent/services/common/quota.h"
#include "agent/services/common/roster.h"
#include "agent/services/common/session_table.h"
#include "agent/services/common/turns.h"
#include "agent/services/notebook/kernel_pool.h"

namespace caisson::services {

struct JupyterSession {
  explicit JupyterSession(const asio::any_io_executor& executor) : turns(executor) {}
  std::string id;
  std::string kernel_name;  // as it was asked for
  std::string kernel_path;  // which interpreter that is
  std::string cwd;          // to start in
  bool implicit = false;
  std::int64_t created_ns = 0, last_used_ns = 0;  // real time, for clients
  bridge::Clock::time_point last_used;
  Kernel::Pointer kernel;     // absent until the first turn
  std::int64_t until_ns = 0;  // real time: how long the cell that runs may; 0: none runs
  Turns turns;
  bool closed = false;
  std::string why_closed;

  void touch();
  // Writes down what outlives the agent, once there is a kernel.
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

  struct Place {
    std::string session_id;   // "": generated
    std::string kernel_name;  // "": the default
    std::string cwd;          // "": the workspace; relative ones start there
  };
  struct Request {
    Place place;
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
  // The session of that id if there is one, with its kernel started.
  [[nodiscard]] task<SessionPtr> create(Place place);
  [[nodiscard]] SessionPtr find(const std::string& id) const { return table_.find(id); }
  [[nodiscard]] std::vector<SessionPtr> sessions() const { return table_.all(); }
  [[nodiscard]] task<void> close(SessionPtr session, std::string reason);

  // Finds out what kernels there are, once there are any for good.
  [[nodiscard]] task<KernelCatalog> catalog();
  // The name of the default kernel: PYTHON_VERSION's where that is installed.
  [[nodiscard]] std::string default_name(const KernelCatalog& catalog) const;
  // What to do about a Python that is not there: for the name of no kernel, once it is known which there are.
  [[nodiscard]] std::optional<std::string> hint_for(const std::string& kernel_name) const;
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] bridge::LauncherClient& launcher() { return launcher_; }

  // A default kernel for one notebook (notebook_run.h), in a private session. As many as there may be sessions at a time; who
  // comes then waits, in order.
  struct Alone {
    Kernel::Pointer kernel;
    std::shared_ptr<void> slot;
  };
  [[nodiscard]] task<Alone> start_alone(std::string cwd, PackedFiles files, std::uint64_t memory_bytes,
                                        std::shared_ptr<const bool> gone);

  // Has a kernel ready before the first request. Its failure is logged and not an error: a request will say it.
  [[nodiscard]] task<void> prepare();
  // Goes on with the kernel of an agent before. Error: that cannot be; the next cell under its id says that it was lost.
  [[nodiscard]] task<void> take_up(const bridge::LeftSession& left, Keep::Left kept);

  // From now on sessions are made in this workspace of the launcher's. There is none when it is called.
  void serve_workspace(std::string name, std::string home);
  // What is kept ready is ended, and which kernels there are forgotten: the policies have changed.
  void flush();

 private:
  [[nodiscard]] task<SessionPtr> obtain(Place place);
  [[nodiscard]] Result<KernelSpec> resolve(const KernelCatalog& known, std::string name) const;
  [[nodiscard]] task<void> ensure_kernel(SessionPtr session);
  [[nodiscard]] Kernel::Place place_of(std::string label) const;
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
  std::uint64_t generation_ = 0;  // of it: the answer to an older question is not kept
  Turns asking_;                  // for the catalog
  Quota alone_;                   // of kernels that start_alone() made
  std::set<std::string> lost_;    // ids of kernels that an agent before has lost, until they are asked for
  Roster roster_;
};

}  // namespace caisson::services
