// LauncherClient: the agent's end of the IPC with the launcher (fd 3). One stub an operation, named as in ipc/ops.h.
// Owns the socket and the map of pending requests; replies and events are taken by one reader. Every call has a deadline.
// When the launcher is gone or breaks the protocol, `on_gone` is called once and the agent must exit: there is nothing
// that it could do without a launcher.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/bridge/launcher_types.h"
#include "launcher/ipc/channel.h"
#include "launcher/ipc/ops.h"

namespace caisson::bridge {

class LauncherClient {
 public:
  LauncherClient(asio::any_io_executor executor, Fd socket, std::function<void(Error)> on_gone);
  ~LauncherClient();
  LauncherClient(const LauncherClient&) = delete;
  LauncherClient& operator=(const LauncherClient&) = delete;

  // keep_bytes: of the memory file that outlives the agent; 0: none.
  [[nodiscard]] task<Greeting> hello(std::size_t keep_bytes = 0);
  // Hands over the memory file that hello() received. Invalid after the first call, or if the launcher sent none.
  [[nodiscard]] Fd take_keep() { return std::move(keep_); }
  // All that an agent before has left; from then on it is ours.
  [[nodiscard]] task<std::vector<LeftSession>> session_adopt();
  // Ends that were let go are absent. Its exit, if it has ended, is told as that of any other.
  [[nodiscard]] task<ExecStarted> exec_adopt(std::shared_ptr<SessionHandle> session, std::string exec);
  // label: the client's id, for the audit log only. isolated: with a home, /tmp and loopback of its own. memory_bytes: of all
  // that runs in it, instead of the policy's limit, which must not be less; 0: the policy's. keep: it outlives the agent.
  [[nodiscard]] task<std::shared_ptr<SessionHandle>> session_create(std::string domain, std::string label, std::string workspace,
                                                                    bool isolated = false, std::uint64_t memory_bytes = 0,
                                                                    bool keep = false);
  [[nodiscard]] task<ExecOutcome> session_exec(std::shared_ptr<SessionHandle> session, ExecRequest request);
  [[nodiscard]] task<void> exec_signal(std::shared_ptr<ExecHandle> exec, std::string signal);
  [[nodiscard]] task<json::Value> session_stat(std::string session);
  [[nodiscard]] task<json::Value> session_report(std::string session);
  // {token, key, statement} of the boot, or of a session of ours. nonce: "" for none.
  [[nodiscard]] task<json::Value> attest(std::string session, std::string nonce);
  // {sessions, next?}; "" for the first. top: rows of the largest processes with each, at most so many.
  [[nodiscard]] task<json::Value> session_list(std::string after, std::int64_t top = 0);
  // {digest, preset, domains, refused}; of one domain ("" for all): {policy}.
  [[nodiscard]] task<json::Value> policy(std::string domain);
  // {accepted, old, new, problems}. Errors: limit when the last one was less than a second ago, or than three times as long as it
  // took.
  [[nodiscard]] task<json::Value> policy_reload();
  // {sessions: [{session, running}]} that have a log and started before `before` ("": all), the newest first.
  [[nodiscard]] task<json::Value> audit_list(std::string before, std::int64_t limit);
  // segment 0: the last one. Code::not_found where there is none.
  [[nodiscard]] task<AuditSegment> audit_open(std::string session, std::int64_t segment);
  // Those of ours that live now.
  [[nodiscard]] std::vector<std::shared_ptr<SessionHandle>> living() const;
  [[nodiscard]] task<void> session_destroy(std::shared_ptr<SessionHandle> session, std::string reason);
  // {name, disk_bytes?, idle_seconds?, persistent?} -> the launcher's description of the new workspace.
  [[nodiscard]] task<json::Value> workspace_create(json::Value request);
  [[nodiscard]] task<std::vector<json::Value>> workspace_list();
  [[nodiscard]] task<void> workspace_destroy(std::string name, std::string reason);
  // Stops all that runs in it, or lets it go on.
  [[nodiscard]] task<void> workspace_pause(std::string name);
  [[nodiscard]] task<void> workspace_resume(std::string name);
  // Called when a workspace has ended, for whatever reason.
  void on_workspace_end(std::function<void(const std::string& name)> told);
  // Called when the launcher has taken new policies, whoever asked for it.
  void on_policy_reload(std::function<void()> told);
  // Called when a session of ours has ended without our asking: `end_reason` says why.
  void on_session_end(std::function<void(const SessionHandle& session)> told);

  // What hello() answered.
  [[nodiscard]] const Greeting& greeting() const { return greeting_; }
  [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }
  // True when a session_exec of this request fits into one IPC message.
  [[nodiscard]] static bool fits(const std::string& session, const ExecRequest& request);

 private:
  struct Pending;
  struct Link;

  // The answered request. query(): the reply's body, or its error.
  [[nodiscard]] task<std::shared_ptr<Pending>> call(ipc::Op op, json::Value body, std::chrono::milliseconds limit);
  [[nodiscard]] task<json::Value> query(ipc::Op op, json::Value body, std::chrono::milliseconds limit);
  static task<void> read_loop(std::shared_ptr<Link> link);
  static task<void> write_loop(std::shared_ptr<Link> link);

  asio::any_io_executor executor_;
  std::shared_ptr<Link> link_;  // shared with the reader and the writer, which may outlive this object for a moment
  Greeting greeting_;
  Fd keep_;
};

}  // namespace caisson::bridge
