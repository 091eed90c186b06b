// LauncherClient: the agent's end of the IPC with the launcher (fd 3). One stub for each operation, named as in common/ipc/ops.h.
// Owns the socket and the map of pending requests; replies and events are taken by one reader. Every call has a deadline. When
// the launcher is gone or breaks the protocol, `on_gone` is called once and the agent must exit: it can do nothing without a
// launcher.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/bridge/launcher_types.h"
#include "launcher/common/ipc/channel.h"
#include "launcher/common/ipc/ops.h"

namespace caisson::bridge {

// The code with this name, as the launcher and caisson-gate say it of a refusal; io for any other. Never Code::internal: the
// route layer would answer 500, and SDKs repeat a 500.
[[nodiscard]] Code code_from(std::string_view name);

class LauncherClient {
 public:
  LauncherClient(asio::any_io_executor executor, Fd socket, std::function<void(Error)> on_gone);
  ~LauncherClient();
  LauncherClient(const LauncherClient&) = delete;
  LauncherClient& operator=(const LauncherClient&) = delete;

  // keep_bytes: size of the memory file that outlives the agent; 0: no file.
  [[nodiscard]] task<Greeting> hello(std::size_t keep_bytes = 0);
  // Hands over the memory file that hello() received. Invalid after the first call, or if the launcher sent none.
  [[nodiscard]] Fd take_keep() { return std::move(keep_); }
  // Takes over every session that the previous agent left.
  [[nodiscard]] task<std::vector<LeftSession>> session_adopt();
  // Takes over a command of such a session. Pipes that were released are absent. If the command has ended, its exit arrives as
  // usual.
  [[nodiscard]] task<ExecStarted> exec_adopt(std::shared_ptr<SessionHandle> session, std::string exec);
  // label: the client's id, for the audit log only. isolated: the session has a home, /tmp and loopback of its own. memory_bytes:
  // limit for the whole session, at most the policy's; 0: the policy's. keep: the session outlives the agent.
  [[nodiscard]] task<std::shared_ptr<SessionHandle>> session_create(std::string domain, std::string label, std::string workspace,
                                                                    bool isolated = false, std::uint64_t memory_bytes = 0,
                                                                    bool keep = false);
  // With what `variables_of` says, where the request has no such variables itself; the agent's own programs get none of these.
  [[nodiscard]] task<ExecOutcome> session_exec(std::shared_ptr<SessionHandle> session, ExecRequest request);
  [[nodiscard]] task<void> exec_signal(std::shared_ptr<ExecHandle> exec, std::string signal);
  [[nodiscard]] task<json::Value> session_stat(std::string session);
  [[nodiscard]] task<json::Value> session_report(std::string session);
  // {token, key, statement} about the boot (session ""), or about one of our sessions. nonce: "" for none.
  [[nodiscard]] task<json::Value> attest(std::string session, std::string nonce);
  // {sessions, next?}. after: "" for the first page. top: how many of its largest processes each session lists.
  [[nodiscard]] task<json::Value> session_list(std::string after, std::int64_t top = 0);
  // All domains (""): {digest, preset, domains, refused}. One domain: {policy}.
  [[nodiscard]] task<json::Value> policy(std::string domain);
  // {accepted, old, new, problems}. Code::limit: the last reload was less than a second ago, or less than three times its own
  // duration.
  [[nodiscard]] task<json::Value> policy_reload();
  // {sessions: [{session, running}]}: sessions with a log that started before `before` ("": all), newest first.
  [[nodiscard]] task<json::Value> audit_list(std::string before, std::int64_t limit);
  // segment 0: the last one. Code::not_found: no log has this name.
  [[nodiscard]] task<AuditSegment> audit_open(std::string session, std::int64_t segment);
  // How many requests wait for the launcher's answer.
  [[nodiscard]] std::size_t pending() const;
  // For how long requests have waited without any word from the launcher; 0: none waits.
  [[nodiscard]] Clock::duration silence() const;
  // Our sessions that live now.
  [[nodiscard]] std::vector<std::shared_ptr<SessionHandle>> living() const;
  [[nodiscard]] task<void> session_destroy(std::shared_ptr<SessionHandle> session, std::string reason);
  // {name, disk_bytes?, idle_seconds?, persistent?} -> the launcher's description of the new workspace.
  [[nodiscard]] task<json::Value> workspace_create(json::Value request);
  // Refused calls since the launcher's start, by name; `path`: names that the walls refuse.
  [[nodiscard]] task<std::map<std::string, std::int64_t>> denied();
  [[nodiscard]] task<std::vector<json::Value>> workspace_list();
  [[nodiscard]] task<void> workspace_destroy(std::string name, std::string reason);
  // Stops every process in it, or lets them continue.
  [[nodiscard]] task<void> workspace_pause(std::string name);
  [[nodiscard]] task<void> workspace_resume(std::string name);
  // A socket that is connected to that port of the workspace's loopback, and to no other network's.
  [[nodiscard]] task<Fd> workspace_connect(std::string workspace, std::uint16_t port);
  // Listening sockets at that port of the workspace's loopback, or at another where it is taken: in its network, and behind it,
  // where there is one, in its network with a way out. unavailable: it has no network of its own here.
  [[nodiscard]] task<std::vector<Fd>> workspace_listen(std::string workspace, std::uint16_t port);
  // Puts an object of at most ipc::kMaxNote bytes on record in the session's log.
  [[nodiscard]] task<void> session_note(std::string session, json::Value note);
  // Called when a workspace has ended, for whatever reason.
  void on_workspace_end(std::function<void(const std::string& name)> told);
  // Called when new policies are in force, even if a client of the launcher other than the agent asked for the reload.
  void on_policy_reload(std::function<void()> told);
  // Called when one of our sessions has ended without our request; `end_reason` says why.
  void on_session_end(std::function<void(const SessionHandle& session)> told);

  // Asked before each command.
  std::function<asio::awaitable<Environment>(std::shared_ptr<SessionHandle>)> variables_of;

  // What hello() answered.
  [[nodiscard]] const Greeting& greeting() const { return greeting_; }
  [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }
  // True when a session_exec of this request fits into one IPC message.
  [[nodiscard]] static bool fits(const std::string& session, const ExecRequest& request);

 private:
  struct Pending;
  struct Link;

  // call() returns the answered request, query() the reply's body or its error.
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
